import { readFile } from "node:fs/promises";
import { ensureError, KonvergeError } from "@konverge/core";

/** Parses JSON from the argument, from the file of `@file`, or from standard input for `@-`. @throws KonvergeError `invalid_request` */
export async function readJson(option: string, given: string): Promise<unknown> {
  const text = given.startsWith("@") ? await readText(option, given.slice(1)) : given;
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    const detail = `${option} is not valid JSON: ${ensureError(cause).message}`;
    throw new KonvergeError("invalid_request", detail, { cause });
  }
}

async function readText(option: string, path: string): Promise<string> {
  try {
    return await readFile(path === "-" ? "/dev/stdin" : path, "utf8");
  } catch (cause) {
    const detail = `${option} cannot be read: ${ensureError(cause).message}`;
    throw new KonvergeError("invalid_request", detail, { cause });
  }
}
