import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

/** A command that reached Redis, sent by a client or a script. */
export interface SeenCommand {
  /** Redis's time of the command, in ms. */
  readonly atMs: number;
  readonly args: readonly string[];
  readonly byScript: boolean;
}

/** Records commands with MONITOR on a plain socket: ioredis fails if the first line arrives before the reply. */
export async function watchCommands(
  url: string,
): Promise<Disposable & { readonly commands: readonly SeenCommand[] }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const lines = createInterface({ input: socket });
  await once(socket, "connect");
  const answered = once(lines, "line");
  socket.write("MONITOR\r\n");
  await answered;
  const commands: SeenCommand[] = [];
  lines.on("line", (line) => {
    // Quoted with backslashes; the searched commands contain none.
    const args = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, arg = ""]) => arg);
    const atMs = Number.parseFloat(line.replace(/^\+/, "")) * 1_000;
    commands.push({ atMs, args, byScript: /^\S+ \[\d+ lua\]/.test(line) });
  });
  return { commands, [Symbol.dispose]: () => socket.destroy() };
}
