// Transcripts, unpacked one at a time; surecall/evals/report/bodies.py packs them.

let packedBodies = null;

async function loadBody(index) {
  if (!keptBodies.has(index)) return null;
  packedBodies ??= JSON.parse(document.getElementById("bodies").textContent);
  const body = await unpack(packedBodies.packed[index]);
  for (const [field, name, place] of body.parts) {
    const value = await unpack(packedBodies.shared[place]);
    // Not by assignment: `__proto__` would be no field.
    body[field] = Object.fromEntries([...Object.entries(body[field]), [name, value]]);
  }
  return body;
}

async function unpack(text) {
  const data = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
