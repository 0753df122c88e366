import { once } from "node:events";
import { connect } from "node:net";
import { createInterface } from "node:readline";

/** Of a command that reached Redis: what it is, and whether a client or a script sent it. */
export interface SeenCommand {
  readonly args: readonly string[];
  readonly byScript: boolean;
}

/** What reached Redis since, by MONITOR on a plain socket: ioredis fails when the first line comes before it has seen the answer. */
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
    // Quoted with backslashes; none of what is looked for holds one.
    const args = [...line.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, arg = ""]) => arg);
    commands.push({ args, byScript: /^\S+ \[\d+ lua\]/.test(line) });
  });
  return { commands, [Symbol.dispose]: () => socket.destroy() };
}
