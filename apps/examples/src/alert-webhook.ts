import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { z } from "zod";

/** The used part of the payload of Alertmanager (its docs, "webhook_config", version 4). */
const notice = z.object({
  groupKey: z.string(),
  alerts: z.array(
    z.object({
      status: z.enum(["firing", "resolved"]),
      fingerprint: z.string(),
      startsAt: z.string(),
      labels: z.record(z.string(), z.string()),
    }),
  ),
});

export interface AlertWebhookOptions {
  /** URL of Konverge, such as `http://konverge-api:7070`. */
  readonly server: string;
  /** Token with the role operator, preferably with a scope. */
  readonly token: string;
  /** Secret that Alertmanager must send as `Authorization: Bearer`. */
  readonly secret: string;
  readonly controller: string;
}

const MAX_BYTES = 1_000_000;
const SEND_MS = 10_000;

/**
 * Reconciles the objects in the labels `namespace` and `object` of firing alerts. It is stateless: Alertmanager repeats a
 * notification after a 5xx response, and the Idempotency-Key makes the repetition the same request.
 */
export function alertWebhook(options: AlertWebhookOptions): Server {
  return createServer((request, response) => {
    handle(request, options)
      .catch((error: unknown) => ({ status: 503, text: `try again: ${String(error)}` }))
      .then(({ status, text }) => response.writeHead(status).end(`${text}\n`))
      .catch(() => response.destroy());
  });
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function handle(request: IncomingMessage, options: AlertWebhookOptions): Promise<Answer> {
  const { server, token, secret, controller } = options;
  if (!isEqual(request.headers.authorization ?? "", `Bearer ${secret}`)) {
    return { status: 401, text: "send the secret as Authorization: Bearer" };
  }
  const text = await read(request);
  const parsed = text === undefined ? undefined : notice.safeParse(parse(text));
  // Alertmanager does not repeat a notification after a 4xx response.
  if (parsed?.success !== true) return { status: 400, text: "this is no notice of Alertmanager" };
  const { alerts, groupKey } = parsed.data;
  const named = alerts.filter(({ status, labels }) => status === "firing" && labels["object"]);
  if (named.length === 0) return { status: 200, text: "nothing to reconcile" };
  const items = named.slice(0, 1_000).map(({ labels }) => ({
    controller,
    ...(labels["namespace"] === undefined ? {} : { namespace: labels["namespace"] }),
    name: labels["object"],
    reason: `alert ${labels["alertname"] ?? "without a name"}`,
  }));
  const answer = await fetch(`${server}/v1/reconciles/batch`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "idempotency-key": digest([groupKey, ...named.map(idOf)].join("\n")).toString("hex"),
    },
    body: JSON.stringify({ items }),
    signal: AbortSignal.timeout(SEND_MS),
  });
  const body = await answer.text();
  if (answer.ok) return { status: 200, text: body };
  const isWorthAnotherTry = answer.status >= 500 || answer.status === 429 || answer.status === 409;
  return { status: isWorthAnotherTry ? 503 : 400, text: body };
}

/** One firing of an alert. */
function idOf({ fingerprint, startsAt }: { fingerprint: string; startsAt: string }): string {
  return `${fingerprint} ${startsAt}`;
}

async function read(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_BYTES) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isEqual(given: string, expected: string): boolean {
  return timingSafeEqual(digest(given), digest(expected));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

if (import.meta.main) {
  const { KONVERGE_SERVER, KONVERGE_TOKEN, WEBHOOK_SECRET, PORT = "9095" } = process.env;
  if (!KONVERGE_SERVER || !KONVERGE_TOKEN || !WEBHOOK_SECRET) {
    throw new Error("set KONVERGE_SERVER, KONVERGE_TOKEN and WEBHOOK_SECRET");
  }
  alertWebhook({
    server: KONVERGE_SERVER,
    token: KONVERGE_TOKEN,
    secret: WEBHOOK_SECRET,
    controller: "node-pool",
  }).listen(Number(PORT));
}
