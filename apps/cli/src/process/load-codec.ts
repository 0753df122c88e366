import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ensureError, findCodecIssue, KonvergeError, type PayloadCodec } from "@konverge/core";

/** Imports the codec that KONVERGE_CODEC names, if it is set. @throws KonvergeError `invalid_config` */
export async function loadCodec(path: string | undefined): Promise<PayloadCodec | undefined> {
  if (path === undefined) return undefined;
  const invalid = (detail: string, cause?: unknown) =>
    new KonvergeError("invalid_config", `KONVERGE_CODEC: ${path} ${detail}`, { cause });
  let loaded: { readonly default?: unknown };
  try {
    loaded = (await import(pathToFileURL(resolve(path)).href)) as typeof loaded;
  } catch (error) {
    throw invalid(`cannot be loaded: ${ensureError(error).message}`, error);
  }
  const given = loaded.default;
  const isConfig = typeof given === "object" && given !== null && "codec" in given;
  const codec = isConfig ? given.codec : given;
  const issue = findCodecIssue(codec);
  if (issue === undefined) return codec as PayloadCodec;
  throw invalid(`has no codec as default export, nor a configuration with one: ${issue}`);
}
