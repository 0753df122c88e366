import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: {
    readonly reason?: string;
    readonly callFrames?: readonly {
      readonly callFrameId: string;
      readonly functionName: string;
    }[];
  };
  readonly result?: { readonly result?: { readonly value?: unknown } };
}

export interface Debugged {
  /** The functions in which `debugger` has stopped. */
  readonly stops: readonly string[];
  /** The values of the expression, evaluated at each stop. */
  readonly values: readonly unknown[];
  readonly code: number;
  readonly stdout: string;
}

/** Runs a program of Node under its inspector, as an editor does, and evaluates an expression at each `debugger` statement. */
export async function debugProgram(args: readonly string[], expression: string): Promise<Debugged> {
  const child = spawn(process.execPath, ["--inspect-brk=127.0.0.1:0", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = once(child, "close");
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  const { promise: address, resolve } = Promise.withResolvers<string>();
  const { promise: done, resolve: finish } = Promise.withResolvers<void>();
  createInterface(child.stderr).on("line", (line) => {
    const [, found] = /^Debugger listening on (ws:\S+)/.exec(line) ?? [];
    if (found !== undefined) resolve(found);
    // The process waits until its debugger is gone.
    if (line.startsWith("Waiting for the debugger to disconnect")) finish();
  });
  const socket = new WebSocket(await address);
  await once(socket, "open");
  const stops: string[] = [];
  const values: unknown[] = [];
  let serial = 0;
  const send = (method: string, params: object = {}) =>
    socket.send(JSON.stringify({ id: (serial += 1), method, params }));
  let evaluation = 0;
  socket.addEventListener("message", ({ data }) => {
    const { id, method, params, result } = JSON.parse(String(data)) as Message;
    if (id !== undefined && id === evaluation) {
      values.push(result?.result?.value);
      send("Debugger.resume");
    }
    if (method !== "Debugger.paused") return;
    const [frame] = params?.callFrames ?? [];
    // The first line of the program.
    if (params?.reason === "Break on start" || frame === undefined) {
      send("Debugger.resume");
      return;
    }
    stops.push(frame.functionName);
    send("Debugger.evaluateOnCallFrame", { callFrameId: frame.callFrameId, expression });
    evaluation = serial;
  });
  send("Debugger.enable");
  send("Runtime.runIfWaitingForDebugger");
  await done;
  socket.close();
  const [code] = (await ended) as [number];
  return { stops, values, code, stdout };
}
