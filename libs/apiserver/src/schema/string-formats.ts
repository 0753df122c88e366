import { hasFormat } from "@konverge/cel";

/**
 * Returns why a string does not match the format, with the real server's text; undefined if it does, or if the format
 * is not checked.
 */
export function formatError(format: string, value: string): string | undefined {
  if (hasFormat(format, value)) return undefined;
  return `must be of type ${format}: ${JSON.stringify(value)}`;
}
