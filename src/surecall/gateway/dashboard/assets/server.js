// What the pages ask of the gateway.

const PATIENCE_MS = 30_000;
const ACT_PATIENCE_MS = 180_000;

let session = null;

class ServerError extends Error {
  constructor(status, error) {
    super(error?.message ?? `The gateway answered with ${status}.`);
    this.status = status;
    this.code = error?.code ?? "";
    this.hint = error?.hint ?? "";
  }
}

async function ask(path, { method = "GET", body } = {}) {
  const headers = { accept: "application/json" };
  if (method === "POST") {
    headers["content-type"] = "application/json";
    headers["x-surecall-csrf"] = session.csrf;
  }
  const response = await fetch(path, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    credentials: "same-origin",
    cache: "no-store",
    redirect: "error",
    signal: AbortSignal.timeout(method === "POST" ? ACT_PATIENCE_MS : PATIENCE_MS),
  });
  let data = null;
  try {
    data = await response.json();
  } catch {
    if (response.ok) throw new ServerError(response.status, { message: "The answer is not JSON." });
  }
  if (!response.ok) throw new ServerError(response.status, data?.error);
  return data;
}

function act(path, body = {}) {
  return ask(path, { method: "POST", body });
}

async function loadSession() {
  session = await ask("/ui/data/session");
}
