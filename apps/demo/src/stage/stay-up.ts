import { aborted } from "./stop-signal.ts";

/** What a shell reports for Ctrl-C. */
export const INTERRUPTED = 130;

/** Resolves at Ctrl-C. */
export async function stayUp(
  at: string,
  { signal, print }: { readonly signal: AbortSignal; readonly print: (line: string) => void },
): Promise<void> {
  print(`still running: open ${at}; press Ctrl-C to stop and remove everything`);
  await aborted(signal);
}
