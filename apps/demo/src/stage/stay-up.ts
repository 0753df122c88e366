import type { DemoProgress } from "./progress.ts";
import { aborted } from "./stop-signal.ts";

/** What a shell reports for Ctrl-C. */
const INTERRUPTED = 130;

/** Returns the line with the address of the dashboard, and whether it will be gone at the end. */
export function addressLine(url: string, { exit }: { readonly exit: boolean }): string {
  return exit
    ? `dashboard until the demo ends: ${url} (--no-exit keeps it running)`
    : `dashboard: ${url}`;
}

/** Resolves at Ctrl-C. */
export async function stayUp(
  at: string,
  { signal, print }: { readonly signal: AbortSignal; readonly print: (line: string) => void },
): Promise<void> {
  print(`still running: open ${at}; press Ctrl-C to stop and remove everything`);
  await aborted(signal);
}

/** Plays a demo and returns its exit code, also if Ctrl-C interrupts it. */
export async function untilInterrupted(
  { signal, progress }: { readonly signal: AbortSignal; readonly progress: DemoProgress },
  play: () => Promise<number>,
): Promise<number> {
  try {
    return await play();
  } catch (error) {
    if (!signal.aborted) throw error;
    progress.print("interrupted");
    return INTERRUPTED;
  } finally {
    progress.end();
  }
}
