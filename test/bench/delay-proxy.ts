/** A TCP proxy that delays all data by a constant time in each direction. Its arguments are the target's port and the delay in ms. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

const [port = "", delayMs = ""] = process.argv.slice(2);

const server = createServer((client) => {
  const target = connect(Number(port), "127.0.0.1");
  pass(client, target);
  pass(target, client);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
console.log(`port ${(server.address() as AddressInfo).port}`);
process.stdin.resume();
await once(process.stdin, "end");
process.exit(0);

function pass(from: Socket, to: Socket): void {
  from.setNoDelay(true);
  const line: { readonly chunk: Buffer; readonly dueMs: number }[] = [];
  /** Timers are late by up to 1 ms, which would be most of the delay. */
  const deliver = (): void => {
    for (const nowMs = performance.now(); line[0] !== undefined && line[0].dueMs <= nowMs;)
      to.write(line.shift()?.chunk ?? "");
    if (line.length > 0) setImmediate(deliver);
  };
  from.on("data", (chunk) => {
    line.push({ chunk, dueMs: performance.now() + Number(delayMs) });
    if (line.length === 1) deliver();
  });
  from.on("error", () => undefined);
  from.on("close", () => to.destroy());
}
