import { parseJson, type JsonObject } from "@konverge/core";
import {
  badRequest,
  expired,
  notFound,
  StatusError,
  tooLargeVersion,
} from "../errors/status-error.ts";
import type { StoredObject } from "../storage/stored-object.ts";
import { answerObject, keyOf, viewOf, type Answer, type Call } from "./call.ts";
import { parseVersion, readListOptions, type ListOptions } from "./list-options.ts";
import { formatList } from "./list-text.ts";
import { readSelector } from "./selectors.ts";

const EXPIRED_TOKEN =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/** GET of one object: newest, or not older than `resourceVersion`. */
export async function getObject(call: Call): Promise<Answer> {
  const { kind, name, table } = call;
  const floor = parseVersion(call.query.get("resourceVersion") ?? "", false);
  await untilVersion(call, floor ?? 0);
  const stored = table.get(keyOf(call, name));
  if (stored === undefined) throw notFound(kind, name);
  return answerObject(kind, stored);
}

/** GET of a collection. */
export async function listObjects(call: Call): Promise<Answer> {
  const { kind } = call;
  const options = readListOptions(call.query);
  const selector = readSelector(kind, call.query);
  const page = await choosePage(call, options);
  const matching = page.objects.filter(
    (stored) => selector === undefined || selector(viewOf(kind, stored).object),
  );
  const rest = matching.filter(({ key }) => page.after === undefined || key > page.after);
  const { limit } = options;
  // The watch cache, which serves version 0, has no pages.
  const isPaged = limit > 0 && rest.length > limit && options.resourceVersion !== "0";
  const shown = isPaged ? rest.slice(0, limit) : rest;
  const last = shown.at(-1);
  const metadata: JsonObject = { resourceVersion: String(page.version) };
  if (isPaged && last !== undefined) {
    metadata["continue"] = encodeToken({ version: page.version, after: last.key });
    if (selector === undefined) metadata["remainingItemCount"] = rest.length - limit;
  }
  return { code: 200, text: formatList(kind, shown, metadata) };
}

/** Returns the current objects of a collection, with selectors applied. */
export function selectObjects(call: Call): StoredObject[] {
  const selector = readSelector(call.kind, call.query);
  return call.table
    .list(prefixOf(call))
    .filter((stored) => selector === undefined || selector(viewOf(call.kind, stored).object));
}

/** Common prefix of the keys in a call's namespace. */
export const prefixOf = ({ kind, namespace }: Call): string =>
  kind.namespaced && namespace !== "" ? `${namespace}/` : "";

interface Page {
  readonly objects: readonly StoredObject[];
  readonly version: number;
  /** Key of the last object of the previous page. */
  readonly after: string | undefined;
}

async function choosePage(call: Call, options: ListOptions): Promise<Page> {
  const { state, table } = call;
  const { continueToken, resourceVersion, limit, versionMatch } = options;
  const wanted = parseVersion(resourceVersion, false);
  if (continueToken !== "") {
    if (wanted !== undefined && wanted !== 0) {
      throw badRequest("specifying resource version is not allowed when using continue");
    }
    const token = decodeToken(continueToken);
    // An inconsistent token continues with the current state.
    const version = token.version < 0 ? state.store.version : token.version;
    const objects = table.listAt(version, prefixOf(call));
    if (objects === undefined) throw expiredToken(token.after);
    return { objects, version, after: token.after };
  }
  await untilVersion(call, wanted ?? 0);
  const isExact =
    wanted !== undefined &&
    wanted !== 0 &&
    (versionMatch === "Exact" || (limit > 0 && versionMatch === ""));
  if (!isExact) {
    return { objects: table.list(prefixOf(call)), version: state.store.version, after: undefined };
  }
  const objects = table.listAt(wanted, prefixOf(call));
  if (objects === undefined) {
    throw expired("The provided resource version is too old to display a consistent list result.");
  }
  return { objects, version: wanted, after: undefined };
}

/**
 * Waits until the store has reached a version: a client may have one from another server of the same cluster.
 * @throws StatusError 504 if it does not arrive in time
 */
export async function untilVersion({ state }: Call, version: number): Promise<void> {
  const { store, freshnessLimitMs } = state;
  if (store.version >= version) return;
  const reached = await new Promise<boolean>((resolve) => {
    const finish = (result: boolean) => {
      clearTimeout(timer);
      stop();
      resolve(result);
    };
    const timer = setTimeout(() => finish(false), freshnessLimitMs);
    const stop = store.onChange(() => {
      if (store.version >= version) finish(true);
    });
  });
  if (!reached) throw tooLargeVersion(String(version), store.version);
}

interface Token {
  /** Version of the first page; -1 for a token without consistency. */
  readonly version: number;
  readonly after: string;
}

const encodeToken = ({ version, after }: Token): string =>
  Buffer.from(
    JSON.stringify({ v: "meta.k8s.io/v1", rv: version, start: `${after}\u0000` }),
  ).toString("base64url");

function decodeToken(text: string): Token {
  try {
    const { v, rv, start } = parseJson(Buffer.from(text, "base64url").toString()) as JsonObject;
    if (v === "meta.k8s.io/v1" && typeof rv === "number" && typeof start === "string" && rv !== 0) {
      return { version: rv, after: start.replace("\u0000", "") };
    }
  } catch {
    // Reported below, with the text for any invalid token.
  }
  throw badRequest("continue key is not valid: encoded start key or version is missing");
}

/** The response has a token that continues with the newest state, at the price of consistency. */
function expiredToken(after: string): StatusError {
  const error = expired(EXPIRED_TOKEN);
  return new ExpiredPage(error.message, encodeToken({ version: -1, after }));
}

class ExpiredPage extends StatusError {
  readonly #token: string;
  constructor(message: string, token: string) {
    super(410, "Expired", message);
    this.#token = token;
  }
  override toStatus(): JsonObject {
    return { ...super.toStatus(), metadata: { continue: this.#token } };
  }
}
