import {
  defined,
  findCause,
  isJsonObject,
  isKonvergeError,
  isRawNumber,
  parseJson,
  typeOfError,
  type JsonValue,
} from "@konverge/core";
import type { AttemptSecrets, KubeClient, NotedCall } from "@konverge/kube";
import type { AttemptLease } from "@konverge/queue";
import type { AttemptRecording } from "@konverge/records";
import type { AttemptRun } from "../attempt/run-attempt.ts";
import { scrubValue } from "../attempt/handler-log.ts";
import type { AttemptRecorder, NotedRead } from "./attempt-recorder.ts";
import { hideValues, IDENTITY } from "./hide-values.ts";

interface RecordingContext {
  readonly controller: string;
  readonly client: Pick<KubeClient, "isSensitive">;
}

type Gap = AttemptRecording["gaps"][number];

const TOO_LARGE = "the recording of an attempt has at most 1,000,000 characters";
const SENSITIVE = "its values are not recorded, because the kind is sensitive";

/** Makes the recording of an ended attempt, without values of sensitive objects. */
export function buildRecording(
  lease: AttemptLease,
  run: AttemptRun,
  recorder: AttemptRecorder,
  context: RecordingContext,
): AttemptRecording {
  const gaps = new Gaps();
  for (const { about, reason } of recorder.gaps) gaps.note(about, reason);
  if (recorder.isCut) gaps.note("later reads and writes", TOO_LARGE);
  const { secrets } = run.trace;
  const redaction: Redaction = { secrets, recorder, gaps, client: context.client };
  const { id, epoch, attempt, failures, conflicts, triggers, floor, class: of } = lease;
  return {
    kind: "attempt-recording",
    format: 1,
    key: id,
    controller: context.controller,
    epoch,
    attempt,
    failures,
    conflicts,
    triggers: triggers.map((trigger) => ({ ...trigger })),
    ...defined({ floor }),
    class: of,
    requestedAtMs: lease.requestedAtMs,
    startedAtMs: lease.startedAtMs,
    beganAtMs: recorder.beganAtMs,
    endedAtMs: Date.now(),
    ...(recorder.isCut ? { isCut: true as const } : {}),
    outcome: outcomeOf(run),
    calls: Object.fromEntries(
      [...recorder.clusters].map(([cluster, { calls }]) => [
        cluster,
        calls.map((call) => recordedCall(call, redaction)),
      ]),
    ),
    lists: recorder.lists.map((read) => recordedRead(read, redaction)),
    finds: recorder.finds.map((read) => recordedRead(read, redaction)),
    passed: recorder.passed.map(({ lane, object }) => {
      const text = object === undefined ? null : scrubbed(JSON.stringify(object), redaction);
      if (text === null || recorder.take(text.length)) return { lane, object: text };
      gaps.note(`object in lane ${lane}`, TOO_LARGE);
      return { lane, object: null, omitted: "tooLarge" as const };
    }),
    fresh: [...recorder.fresh],
    scopes: [...recorder.scopes],
    externals: recorder.externals.map((each) => recordedResult(each, redaction)),
    runs: recorder.runs.map((each) => scrubValue(each, secrets) as typeof each),
    events: recorder.events.map((each) => scrubValue(each, secrets) as typeof each),
    gaps: gaps.list,
  };
}

interface Redaction {
  readonly secrets: AttemptSecrets;
  readonly recorder: AttemptRecorder;
  readonly gaps: Gaps;
  readonly client: Pick<KubeClient, "isSensitive">;
}

/** What a recording lacks, each fact once. */
class Gaps {
  readonly #known = new Map<string, Gap>();

  note(about: string, reason: string): void {
    const id = `${about}\n${reason}`;
    if (this.#known.size < MOST_GAPS || this.#known.has(id)) this.#known.set(id, { about, reason });
  }

  get list(): Gap[] {
    return [...this.#known.values()];
  }
}

const MOST_GAPS = 100;

/** The message is safe: the attempt has redacted it. */
function outcomeOf({ outcome }: AttemptRun): AttemptRecording["outcome"] {
  const { kind } = outcome;
  const error = "error" in outcome ? outcome.error : undefined;
  return {
    kind,
    ...("afterMs" in outcome ? { afterMs: Math.round(outcome.afterMs) } : {}),
    ...("cause" in outcome ? { cause: outcome.cause } : {}),
    ...(error === undefined
      ? {}
      : {
          error: {
            code: findCause(error, isKonvergeError)?.code ?? typeOfError(error),
            message: error.message,
          },
        }),
  };
}

function recordedCall(
  { sensitive, ref, ...call }: NotedCall,
  redaction: Redaction,
): AttemptRecording["calls"][string][number] {
  const { gaps, client } = redaction;
  const about = `${call.method} ${call.path.split("?", 1)[0] ?? ""}`;
  if (call.omitted === "tooLarge") gaps.note(about, TOO_LARGE);
  if (call.omitted === "aborted") gaps.note(about, "the attempt ended before the answer");
  // The handler may have marked the kind after the call.
  const isSensitive = sensitive || (ref !== undefined && client.isSensitive(ref));
  if (isSensitive) gaps.note(about, SENSITIVE);
  const redact = (text: string) => (isSensitive ? hiddenText(text) : scrubbed(text, redaction));
  const { body, answer, error, path } = call;
  return {
    ...call,
    path: scrubbedQuery(path, redaction),
    ...(body === undefined ? {} : { body: redact(body) }),
    ...(answer === undefined ? {} : { answer: { ...answer, body: redact(answer.body) } }),
    ...(error === undefined
      ? {}
      : { error: { ...error, message: redaction.secrets.scrub(error.message) } }),
    ...(isSensitive ? { redacted: true as const } : {}),
  };
}

function recordedRead(
  { sentAt, answeredAt, query, type, found }: NotedRead,
  redaction: Redaction,
): AttemptRecording["lists"][number] {
  const read = { sentAt, answeredAt, query };
  if (found === undefined) return { ...read, found: null };
  const { recorder, gaps, client } = redaction;
  const about = `${Array.isArray(found) ? "list of " : ""}${type.resource} in the cache`;
  const isSensitive = client.isSensitive(type);
  const text = JSON.stringify(found);
  if (!recorder.take(text.length)) {
    gaps.note(about, TOO_LARGE);
    return { ...read, found: null, omitted: "tooLarge" };
  }
  if (!isSensitive) return { ...read, found: scrubbed(text, redaction) };
  gaps.note(about, SENSITIVE);
  return { ...read, found: hiddenText(text), redacted: true };
}

function recordedResult(
  { result, error, ...call }: AttemptRecorder["externals"][number],
  redaction: Redaction,
): AttemptRecording["externals"][number] {
  const { secrets, recorder, gaps } = redaction;
  if (error !== undefined) {
    return { ...call, error: { ...error, message: secrets.scrub(error.message) } };
  }
  if (result === undefined) return call;
  const text = jsonOf(result);
  const about = `result of "${call.name}"`;
  if (text === undefined) {
    gaps.note(about, "it is not JSON, so it is not recorded");
    return { ...call, omitted: "notJson" };
  }
  if (!recorder.take(text.length)) {
    gaps.note(about, TOO_LARGE);
    return { ...call, omitted: "tooLarge" };
  }
  return { ...call, value: scrubbed(text, redaction) };
}

/** Undefined for a value that JSON would change, such as a Date or a function. */
function jsonOf(value: unknown): string | undefined {
  try {
    return isPlain(value) ? JSON.stringify(value) : undefined;
  } catch {
    return undefined;
  }
}

function isPlain(value: unknown): boolean {
  if (value === null || typeof value === "string" || typeof value === "boolean") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object") return value === undefined;
  if (Array.isArray(value)) return value.every((each) => each !== undefined && isPlain(each));
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    (prototype === Object.prototype || prototype === null) && Object.values(value).every(isPlain)
  );
}

/** Removes values of sensitive objects from a text, which usually is JSON. */
function scrubbed(text: string, { secrets, gaps }: Redaction): string {
  if (secrets.isEmpty || secrets.scrub(text) === text) return text;
  gaps.note("values of sensitive objects", "they are replaced in other objects and writes");
  try {
    return JSON.stringify(deepScrub(parseJson(text), secrets));
  } catch {
    return secrets.scrub(text);
  }
}

/** Names of objects are no secrets: a value that equals one does not hide it. */
function deepScrub(value: JsonValue, secrets: AttemptSecrets, isMetadata = false): JsonValue {
  if (Array.isArray(value)) return value.map((each) => deepScrub(each, secrets));
  if (isRawNumber(value))
    return secrets.scrub(value.rawJSON) === value.rawJSON ? value : "(redacted)";
  if (!isJsonObject(value)) return scrubValue(value, secrets) as JsonValue;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const isKept = isMetadata ? IDENTITY.has(name) : name === "apiVersion" || name === "kind";
      if (isKept) return [name, member];
      return [secrets.scrub(name), deepScrub(member, secrets, name === "metadata")];
    }),
  );
}

function scrubbedQuery(path: string, { secrets }: Redaction): string {
  const [target = "", query] = path.split("?", 2);
  return query === undefined ? path : `${target}?${secrets.scrub(query)}`;
}

function hiddenText(text: string): string {
  try {
    return JSON.stringify(hideValues(parseJson(text)));
  } catch {
    return "(redacted)";
  }
}
