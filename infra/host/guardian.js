import { spawn } from "node:child_process";

/**
 * Waits until the pipe from its parent closes, which happens even if the parent is killed; then ends the guarded
 * processes. The first argument is a folder to remove or an empty string, the others are process ids.
 */
const SCRIPT = `
trap '' INT TERM HUP
read -r word
[ "$word" = release ] && exit 0
folder=$1; shift
alive() {
  for pid do kill -0 "$pid" 2>/dev/null && return 0; done
  return 1
}
wait_for() {
  tries=$1; shift
  while [ "$tries" -gt 0 ] && alive "$@"; do sleep 0.1; tries=$((tries - 1)); done
}
kill -TERM "$@" 2>/dev/null
wait_for 50 "$@"
kill -KILL "$@" 2>/dev/null
# What still writes would put its folder back.
wait_for 20 "$@"
[ -z "$folder" ] || rm -rf "$folder"
`;

/**
 * Ends the given servers when this process dies in any way (kill -9 too), and removes their folder.
 * @param {{ pids: readonly number[], folder?: string }} guarded
 * @returns {{ release(): void }} call `release` after the servers have ended, so that a reused process id is never
 * signalled
 */
export function guard({ pids, folder = "" }) {
  // Detached: Ctrl-C reaches the whole foreground group, and the guardian must outlive it.
  const child = spawn("/bin/sh", ["-c", SCRIPT, "guardian", folder, ...pids.map(String)], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // Without a shell the servers still end at stop(); only a killed parent would leave them behind.
  child.once("error", () => {});
  child.stdin.on("error", () => {});
  child.unref();
  // Typed as a plain stream, but a child's pipe is a socket.
  if ("unref" in child.stdin && typeof child.stdin.unref === "function") child.stdin.unref();
  return {
    release() {
      child.stdin.end("release\n");
    },
  };
}
