import { ensureError } from "@konverge/core";
import { stripVTControlCharacters } from "node:util";
import type { Asking } from "../ask/run-with-client.ts";
import { oneLine } from "../process/explain-failure.ts";
import { keyDetails } from "../text/attempt-text.ts";
import { columns } from "../text/columns.ts";
import { runDetails } from "../text/run-text.ts";
import { drawTop, pageOf, type TopFrame, type TopSize } from "./draw-top.ts";
import { targetsOf } from "../ask/targets-of.ts";
import { readTop } from "./read-top.ts";
import { parseKeys } from "./top-keys.ts";
import { tableOf, type TopTarget } from "./top-rows.ts";
import { FIRST_STATE, pressKey, type TopState } from "./top-state.ts";

const TICK_MS = 1_000;
const READ_EVERY_TICKS = 2;
const TIMEOUT_MS = 10_000;
const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";

export interface TopTerminal {
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
}

/** Shows the live view until the user quits. Resolves to the exit code. */
export async function runTop(asking: Asking, { input, output }: TopTerminal): Promise<number> {
  // The first failure ends the command, as in other commands.
  const first = await readTop(asking, { view: FIRST_STATE.view, signal: timeout() });
  let frame: TopFrame = { data: first, state: FIRST_STATE, failure: undefined, nowMs: Date.now() };
  const { promise: ended, resolve: end } = Promise.withResolvers<number>();
  const sizeOf = (): TopSize => ({
    // Some terminals do not know their size.
    columns: output.columns || 80,
    rows: output.rows || 24,
  });
  const draw = (change: Partial<TopFrame> = {}) => {
    frame = { ...frame, ...change, nowMs: Date.now() };
    const lines = drawTop(frame, sizeOf());
    output.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
  };
  let reading: AbortController | undefined;
  const refresh = async () => {
    reading?.abort();
    const own = new AbortController();
    reading = own;
    const { view, controller } = frame.state;
    try {
      const signal = AbortSignal.any([own.signal, timeout()]);
      const data = await readTop(asking, { view, controller, signal });
      if (reading === own) draw({ data, failure: undefined });
    } catch (error) {
      // A read of another view has replaced this one.
      if (reading !== own) return;
      draw({ failure: oneLine(ensureError(error).message) });
    }
    if (reading === own) reading = undefined;
  };
  const show = (state: TopState) => {
    const isOther = state.view !== frame.state.view || state.controller !== frame.state.controller;
    draw({ state });
    if (isOther) void refresh();
  };
  const onInput = (text: string) => {
    for (const key of parseKeys(text)) {
      const { rows } = tableOf(frame.data, frame.state);
      const page = pageOf(frame, sizeOf());
      const { state, effect } = pressKey(frame.state, key, { rows: rows.length, page });
      if (effect === "quit") return end(0);
      if (effect === "interrupt") return end(130);
      show(state);
      const target = rows[Math.min(state.selected, rows.length - 1)]?.target;
      if (effect === "open" && target !== undefined) void open(target);
    }
  };
  const open = async (target: TopTarget) => {
    if (target.kind === "controller") {
      return show({ ...FIRST_STATE, view: "objects", controller: target.name });
    }
    const before = frame.state;
    const lines = await detailOf(asking, target, sizeOf().columns);
    // The user may have moved on meanwhile.
    if (frame.state === before) draw({ state: { ...before, detail: { lines, offset: 0 } } });
  };
  const onResize = () => draw();
  const restore = () => output.write(LEAVE);
  output.write(ENTER);
  process.once("exit", restore);
  input.setRawMode(true).setEncoding("utf8").on("data", onInput).resume();
  output.on("resize", onResize);
  draw();
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
    // The age of the data is shown even while a read hangs.
    draw();
    if (reading === undefined && ticks % READ_EVERY_TICKS === 0) void refresh();
  }, TICK_MS);
  try {
    return await ended;
  } finally {
    clearInterval(timer);
    reading?.abort();
    output.off("resize", onResize);
    input.off("data", onInput).setRawMode(false).pause();
    process.off("exit", restore);
    restore();
  }
}

function timeout(): AbortSignal {
  return AbortSignal.timeout(TIMEOUT_MS);
}

/** Returns the text of a row, as the commands for one object or run print it. */
async function detailOf(
  { client }: Asking,
  target: Exclude<TopTarget, { readonly kind: "controller" }>,
  width: number,
): Promise<string[]> {
  try {
    const text = await detailText();
    return text.split("\n").flatMap((line) => wrap(line, width));
  } catch (error) {
    return [oneLine(ensureError(error).message)];
  }

  async function detailText(): Promise<string> {
    switch (target.kind) {
      case "object": {
        const [target_] = targetsOf([target.key], { cluster: "default" });
        return target_ === undefined ? "" : keyDetails(await client.objects.get(target_));
      }
      case "run":
        return runDetails(await client.runs.get(target.id));
      case "text":
        return columns(target.rows, { width: Infinity, hasHead: false });
    }
  }
}

/** Breaks a line that is longer than the screen is wide; a broken line loses its colors. */
function wrap(line: string, width: number): string[] {
  const bare = stripVTControlCharacters(line);
  if (bare.length <= width || width < 1) return [line];
  const parts: string[] = [];
  for (let at = 0; at < bare.length; at += width) parts.push(bare.slice(at, at + width));
  return parts;
}
