import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** The network of one process, with faults. */
export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  /** Sets the target of new connections, for a server that restarts on another port. */
  retarget(port: number): void;
  /** Resets every connection, and each new one. */
  cut(): void;
  /** Holds all data back until the network is open again. */
  hold(): void;
  /** Delays each chunk. */
  delay(ms: number): void;
  /** Delivers half of the first chunk of each of the next responses, then resets the connection. */
  tear(answers: number): void;
  heal(): void;
}

type Mode =
  | { readonly kind: "open" | "cut" | "hold" }
  | { readonly kind: "delay"; readonly ms: number };

/** A proxy between one process and a local server. Keeps the order in a connection in every mode. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  let target = targetPort;
  let mode: Mode = { kind: "open" };
  const sockets = new Set<Socket>();
  const held = new Set<Socket>();

  let torn = 0;

  const pass = (from: Socket, to: Socket, isAnswer: boolean) => {
    const deliver = async (chunk: Buffer, afterMs: number) => {
      if (afterMs > 0) await new Promise((resolve) => setTimeout(resolve, afterMs));
      if (from.destroyed && !to.writable) return;
      if (isAnswer && torn > 0) {
        torn -= 1;
        to.write(chunk.subarray(0, Math.ceil(chunk.length / 2)), () => to.resetAndDestroy());
        from.destroy();
        return;
      }
      if (!to.write(chunk)) from.pause();
    };
    let turn = Promise.resolve();
    from.on("data", (chunk) => {
      if (mode.kind === "hold") hold(from);
      const afterMs = mode.kind === "delay" ? mode.ms : 0;
      // Data read before the outage has already left this side.
      turn = turn.then(() => deliver(chunk, afterMs));
    });
    to.on("drain", () => {
      if (!held.has(from)) from.resume();
    });
    from.on("end", () => void turn.then(() => to.end()));
    from.on("close", () => void turn.then(() => to.destroy()));
    // `close` notifies the other side.
    from.on("error", () => undefined);
    if (mode.kind === "hold") hold(from);
  };
  const hold = (socket: Socket) => {
    socket.pause();
    held.add(socket);
  };
  const server = createServer((client) => {
    if (mode.kind === "cut") {
      client.on("error", () => undefined);
      client.resetAndDestroy();
      return;
    }
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      sockets.add(socket);
      socket.once("close", () => {
        sockets.delete(socket);
        held.delete(socket);
      });
    }
    pass(client, upstream, false);
    pass(upstream, client, true);
  });
  const resetAll = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  return {
    port: (server.address() as AddressInfo).port,
    retarget(port) {
      target = port;
    },
    cut() {
      mode = { kind: "cut" };
      resetAll();
    },
    hold() {
      mode = { kind: "hold" };
      for (const socket of sockets) hold(socket);
    },
    delay(ms) {
      mode = { kind: "delay", ms };
    },
    tear(answers) {
      torn = answers;
    },
    heal() {
      torn = 0;
      mode = { kind: "open" };
      for (const socket of held) socket.resume();
      held.clear();
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, "close");
      server.close();
      resetAll();
      await closed;
    },
  };
}
