#!/usr/bin/env bash
# install.sh DIR: the agents of the tests from npm, at the versions that they were tried with, each in a
# directory of its own, linked in DIR/bin. What is there already stays; what cannot be had is an error.
set -euo pipefail
mkdir -p "$1/bin"
dir=$(cd "$1" && pwd)

get() { # get NAME PACKAGE@VERSION… : NAME is the program to link, if the first package has it
  local name=$1 place=$dir/pkg/$1
  shift
  if [ "$(cat "$place/installed" 2>/dev/null)" = "$*" ]; then return; fi
  rm -rf "$place"
  mkdir -p "$place"
  echo '{"private": true}' > "$place/package.json"
  echo "installing $*"
  npm install --prefix "$place" --no-audit --no-fund --prefer-offline --save-exact --loglevel error \
    ${flags:-} "$@" > "$place/install.log" 2>&1 ||
    { tail -5 "$place/install.log" >&2; echo "error: $* could not be installed" >&2; exit 1; }
  if [ -e "$place/node_modules/.bin/$name" ]; then ln -sfn "$place/node_modules/.bin/$name" "$dir/bin/$name"; fi
  echo "$*" > "$place/installed"
}

# opencode brings a program for each kind of processor; the one for this machine is enough.
opencode() {
  local kind
  kind=$(node -p 'process.platform + "-" + process.arch')
  if [ "$kind" = linux-x64 ] && ! grep -qw avx2 /proc/cpuinfo; then kind+=-baseline; fi
  if [ -e /etc/alpine-release ]; then kind+=-musl; fi
  flags=--omit=optional get opencode "opencode-ai@$1" "opencode-$kind@$1"
}

command -v npm > /dev/null || { echo "error: npm is needed for the agents of the tests" >&2; exit 1; }
get node node@24.21.0 # three of them want Node 22 or later
export PATH=$dir/bin:$PATH
# Beside each other: most of the time is the network's.
all=()
get claude @anthropic-ai/claude-code@2.1.325 & all+=($!)
get codex @openai/codex@0.166.0 & all+=($!)
get gemini @google/gemini-cli@0.61.0 & all+=($!)
opencode 1.18.33 & all+=($!)
get opencode-plugin @opencode-ai/plugin@1.18.33 & all+=($!) # which opencode would get for itself in every new home
get qwen @qwen-code/qwen-code@0.24.4 & all+=($!)
get claude-agent-acp @agentclientprotocol/claude-agent-acp@0.99.1 & all+=($!)
get codex-acp @agentclientprotocol/codex-acp@2.6.0 & all+=($!)
get pi @earendil-works/pi-coding-agent@0.87.1 & all+=($!)
for one in "${all[@]}"; do wait "$one"; done
