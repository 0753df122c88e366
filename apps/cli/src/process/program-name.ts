import { basename } from "node:path";

/** A call at the start of a usage line, or in a column of examples. */
const CALL = /(^Usage: | {2,})konverge /gm;

/** Returns the text with calls of `kubectl konverge` instead of `konverge` if kubectl runs this program as its plugin. */
export function nameCalls(text: string, program: string = process.argv[1] ?? ""): string {
  if (!basename(program).startsWith("kubectl-konverge")) return text;
  return text.replace(CALL, "$1kubectl konverge ");
}
