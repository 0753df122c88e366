import { defined, isJsonObject, parseJson, type JsonObject, type JsonValue } from "@konverge/core";
import { checkAnswer, missingMembers } from "./check-answer.ts";
import type { EventStream } from "./api-connection.ts";
import type { Answer, Case, EventsStep, SendStep, Step, WatchStep } from "./case.ts";
import { Normaliser } from "./normalise.ts";
import type { TestedServer } from "./servers.ts";

/** The result of one case on one server. */
export interface CaseResult {
  /** The normalised response of each step, for comparison with another server. */
  readonly record: readonly JsonValue[];
  /** Deviations from the expected responses. */
  readonly problems: readonly string[];
}

const EVENT_LIMIT_MS = 60_000;
const RETRY_LIMIT_MS = 60_000;
const RETRY_EVERY_MS = 20;
/** Headers that are compared; the others belong to the transport. */
const COMPARED_HEADERS = ["content-type", "retry-after", "warning"];

interface CaseNames {
  /** Names the objects of the case, the same on every server. */
  readonly id: string;
  readonly namespace: string;
}

/** Runs the steps of a case in order. */
export async function runCase(
  { steps }: Case,
  server: TestedServer,
  names: CaseNames,
): Promise<CaseResult> {
  const run = new CaseRun(server, names);
  try {
    for (const [index, step] of steps.entries()) await run.step(step, `step ${index + 1}`);
  } finally {
    run.closeStreams();
  }
  return { record: run.record, problems: run.problems };
}

class CaseRun {
  readonly record: JsonValue[] = [];
  readonly problems: string[] = [];
  readonly #server: TestedServer;
  readonly #names: CaseNames;
  readonly #seen: Record<string, Answer> = {};
  readonly #streams = new Map<string, EventStream>();
  readonly #normaliser = new Normaliser();

  constructor(server: TestedServer, names: CaseNames) {
    this.#server = server;
    this.#names = names;
  }

  async step(step: Step, place: string): Promise<void> {
    if ("send" in step) await this.#send(step, place);
    else if ("watch" in step) await this.#openStream(step);
    else if ("events" in step) await this.#readEvents(step, place);
    else this.#server.act?.(step.act);
  }

  closeStreams(): void {
    for (const stream of this.#streams.values()) stream.close();
  }

  async #send(step: SendStep, place: string): Promise<void> {
    const { message, headers } = step.expect;
    const expected = {
      ...this.#fillJson(step.expect),
      ...defined({
        message: typeof message === "string" ? this.#fill(message) : message,
        headers,
      }),
    };
    const deadline = Date.now() + RETRY_LIMIT_MS;
    let answer = await this.#sendOnce(step);
    let failures = checkAnswer(answer, expected, this.#seen);
    while (step.retry === true && failures.length > 0 && Date.now() < deadline) {
      await new Promise((wake) => setTimeout(wake, RETRY_EVERY_MS));
      answer = await this.#sendOnce(step);
      failures = checkAnswer(answer, expected, this.#seen);
    }
    if (step.as !== undefined) this.#seen[step.as] = answer;
    this.#note(place, failures);
    const body = without(answer.body, step.ignore ?? []);
    this.record.push(
      this.#normaliser.value({ code: answer.code, headers: comparedHeaders(answer), body }),
    );
  }

  async #sendOnce(step: SendStep): Promise<Answer> {
    const [method = "", path = ""] = this.#resolve(step.send).split(/ (.*)/);
    const body = step.text ?? bodyText(step, this.#seen);
    const type = step.type ?? (body === undefined ? undefined : "application/json");
    const { code, headers, text } = await this.#server.api.send({
      method,
      path,
      ...(body === undefined ? {} : { body: this.#fill(body) }),
      headers: { ...defined({ "Content-Type": type }), ...step.headers },
    });
    return { code, headers, body: parseBody(text) };
  }

  async #openStream(step: WatchStep): Promise<void> {
    const path = this.#resolve(step.path);
    const stream = await this.#server.api.stream({ method: "GET", path });
    this.#streams.set(step.watch, stream);
    this.record.push({ code: stream.code });
  }

  async #readEvents(step: EventsStep, place: string): Promise<void> {
    const stream = this.#streams.get(step.events);
    if (stream === undefined) throw new Error(`${place}: no watch ${step.events}`);
    const lines = await stream.take(step.count, EVENT_LIMIT_MS);
    let found = lines.map((line) => parseBody(line));
    if (step.unordered === true) found = found.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    const wanted = this.#fillJson(step.expect);
    if (found.length !== wanted.length) {
      const text = lines.join("").slice(0, 500);
      this.#note(place, [`${found.length} events, expected ${wanted.length}: ${text}`]);
    }
    for (const [index, one] of wanted.entries()) {
      this.#note(place, missingMembers(found[index], one, `event ${index}`));
    }
    if (step.ends === true && (await stream.take(1, EVENT_LIMIT_MS)).length > 0) {
      this.#note(place, ["the stream does not end"]);
    }
    this.record.push(this.#normaliser.value({ events: found }));
  }

  #note(place: string, problems: Iterable<string>): void {
    for (const problem of problems) this.problems.push(`${place}: ${problem}`);
  }

  #fill(text: string): string {
    return text.replaceAll("{o}", this.#names.id).replaceAll("{ns}", this.#names.namespace);
  }

  #fillJson<T>(value: T): T {
    return JSON.parse(this.#fill(JSON.stringify(value))) as T;
  }

  #resolve(path: SendStep["send"]): string {
    return this.#fill(typeof path === "string" ? path : path(this.#seen));
  }
}

function bodyText({ body }: SendStep, seen: Record<string, Answer>): string | undefined {
  if (body === undefined) return undefined;
  return JSON.stringify(typeof body === "function" ? body(seen) : body);
}

function parseBody(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}

function comparedHeaders({ headers }: Answer): JsonObject {
  const result: JsonObject = {};
  for (const name of COMPARED_HEADERS) {
    const value = headers[name];
    if (typeof value === "string") result[name] = value;
  }
  return result;
}

function nameOf(event: JsonValue): string {
  const object = isJsonObject(event) ? event["object"] : undefined;
  const metadata = isJsonObject(object) ? object["metadata"] : undefined;
  return isJsonObject(metadata) ? String(metadata["name"]) : "";
}

function without(value: JsonValue, paths: readonly string[]): JsonValue {
  const copy = structuredCopy(value);
  for (const path of paths) {
    const parts = path.split(".");
    const last = parts.pop() ?? "";
    let node: JsonValue | undefined = copy;
    for (const part of parts) node = isJsonObject(node) ? node[part] : undefined;
    if (isJsonObject(node)) delete node[last];
  }
  return copy;
}

const structuredCopy = (value: JsonValue): JsonValue => parseJson(JSON.stringify(value));
