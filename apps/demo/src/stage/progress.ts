export interface DemoProgress {
  /** A line that stays. */
  readonly print: (line: string) => void;
  /** Begins a phase; its updates replace each other on a terminal, and are lines elsewhere. */
  readonly begin: (phase: string) => void;
  readonly update: (line: string) => void;
  readonly end: () => void;
}

/** One live line on a terminal; elsewhere a line per update. */
export function createProgress(stream: NodeJS.WriteStream): DemoProgress {
  let phase = "";
  let live = false;
  const wipe = () => {
    if (live) stream.write("\r\u001b[2K");
    live = false;
  };
  return {
    print: (line) => {
      wipe();
      stream.write(`demo: ${line}\n`);
    },
    begin: (next) => {
      wipe();
      phase = next;
      stream.write(`demo: ${phase}\n`);
    },
    update: (line) => {
      if (stream.isTTY) {
        wipe();
        stream.write(`demo: ${phase}: ${line}`);
        live = true;
      } else {
        stream.write(`demo: ${phase}: ${line}\n`);
      }
    },
    end: wipe,
  };
}
