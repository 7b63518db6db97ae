#!/usr/bin/env bash
# The eval of action.yml: takes its inputs from variables, and never gives one to a shell to read.
set -uo pipefail

folder="${RUNNER_TEMP:-/tmp}/surecall-report"
mkdir -p "$folder"
store="$folder/runs.db"
if [ -n "${BASELINE:-}" ]; then cp "$BASELINE" "$store" || exit 4; fi

words=(--models "${MODELS:-zoo:catalog}" --trials "${TRIALS:-1}" --store "$store" --new)
words+=(--report "html,md,junit" --out "$folder")
if [ -n "${SCENARIOS:-}" ]; then words+=(--scenarios "$SCENARIOS"); fi
if [ -n "${SUITE:-}" ]; then words+=(--suite "$SUITE"); fi
while IFS= read -r gate; do
  if [ -n "${gate// /}" ]; then words+=(--gate "$gate"); fi
done <<<"${GATES:-}"
# The only one that is split into words, by the rules of a shell but without running anything.
while IFS= read -r word; do
  words+=("$word")
done < <(python -c 'import os, shlex; print(*shlex.split(os.environ.get("ARGUMENTS", "")), sep="\n", end="")'; echo)
if [ -z "${words[-1]}" ]; then unset 'words[-1]'; fi

echo "folder=$folder" >>"${GITHUB_OUTPUT:-/dev/null}"
surecall eval "${words[@]}"
code=$?
if [ -f "$folder/summary.md" ]; then
  cat "$folder/summary.md" >>"${GITHUB_STEP_SUMMARY:-/dev/null}"
fi
exit "$code"
