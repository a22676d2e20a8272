#!/usr/bin/env bash
# install.sh DIR: the agents of the tests from npm, at the versions that they were tried with, each in a
# directory of its own, linked in DIR/bin. What is there already stays; what cannot be had is an error.
set -euo pipefail
mkdir -p "$1/bin"
dir=$(cd "$1" && pwd)

get() { # get PACKAGE VERSION PROGRAM
  local place=$dir/pkg/$3
  if [ "$(cat "$place/installed" 2>/dev/null)" = "$1@$2" ] && [ -e "$dir/bin/$3" ]; then return; fi
  rm -rf "$place"
  mkdir -p "$place"
  echo '{"private": true}' > "$place/package.json"
  echo "installing $1 $2"
  npm install --prefix "$place" --no-audit --no-fund --loglevel error "$1@$2" > "$place/install.log" 2>&1 ||
    { tail -5 "$place/install.log" >&2; echo "error: $1 $2 could not be installed" >&2; exit 1; }
  ln -sf "$place/node_modules/.bin/$3" "$dir/bin/$3"
  echo "$1@$2" > "$place/installed"
}

command -v npm > /dev/null || { echo "error: npm is needed for the agents of the tests" >&2; exit 1; }
get node 24.21.0 node # three of them want Node 22 or later
export PATH=$dir/bin:$PATH
get @anthropic-ai/claude-code 2.1.325 claude
get @openai/codex 0.166.0 codex
get @google/gemini-cli 0.61.0 gemini
get opencode-ai 1.18.33 opencode
get @qwen-code/qwen-code 0.24.4 qwen
get @agentclientprotocol/claude-agent-acp 0.99.1 claude-agent-acp
get @earendil-works/pi-coding-agent 0.87.1 pi
