import { createBullBoard } from "@bull-board/api";
import { BullMQAdapter } from "@bull-board/api/bullMQAdapter";
import { HonoAdapter } from "@bull-board/hono";
import { serveStatic } from "@hono/node-server/serve-static";
import { KonvergeError, parseKey } from "@konverge/core";
import { queueOfWorkflow, runOfKey, workflowOfQueue } from "@konverge/workflow";
import { Hono, type Context } from "hono";
import { answerMethod } from "../http/answer-unserved.ts";
import type { ApiEnv } from "../access/authenticate.ts";
import { allows, classFor } from "../access/caller.ts";
import { answerProblem, PROBLEM } from "../http/problem.ts";
import { placeOf } from "../queues/place-of.ts";
import type { QueueAccess } from "../queues/queue-access.ts";
import { readObjectLog } from "../views/object-log.ts";
import { CONTRAST_STYLE, NAMING_SCRIPT } from "./job-board-names.ts";

const PATH = "/jobs";
/** Jobs per page of a queue. */
const MOST_JOBS = 50;
const MOST_PAGES = 10_000;
/** States of jobs that the board lists. */
const STATUSES: ReadonlySet<string> = new Set([
  "latest",
  "active",
  "waiting",
  "waiting-children",
  "prioritized",
  "completed",
  "failed",
  "delayed",
  "paused",
]);
const LOOKING: readonly string[] = ["GET", "HEAD"];
/** The board uses inline styles. Its requests for foreign fonts are blocked. */
const POLICY =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; base-uri 'self'; frame-ancestors 'none'";
const BASE = `<base href="${PATH}/" />`;
/** The views of the dashboard, above the board: its own link to them is in a menu. */
const LINKS = [
  ["../", "‹ Konverge"],
  ["../attempts", "Attempts"],
  ["../workflows", "Workflows"],
  ["../objects", "Objects"],
  ["../dead-letters", "Dead letters"],
] as const;
const BAR = `<nav aria-label="Konverge" style="display:flex;flex-wrap:wrap;gap:0 1.25rem;padding:.45rem 1.25rem;font:14px/1.5 system-ui,sans-serif;background:#15181e;position:relative;z-index:101">${LINKS.map(([to, text]) => `<a href="${to}" style="color:#e7eaf0;text-decoration:none">${text}</a>`).join("")}</nav>`;
const ROOT = '<div id="root">';
/** The policy forbids scripts in the page. */
const NAMING = "names.js";
const ADDED = `${CONTRAST_STYLE}<script type="module" src="${NAMING}"></script>`;
const TIME: Intl.DateTimeFormatOptions = {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
  timeZone: "UTC",
  timeZoneName: "short",
};
const DAY: Intl.DateTimeFormatOptions = { year: "numeric", month: "2-digit", day: "2-digit" };
/** UTC with its name, as on the dashboard. */
const DATES = {
  short: TIME,
  common: { ...DAY, ...TIME },
  full: { ...DAY, ...TIME, fractionalSecondDigits: 3 },
} as const;
const FONTS = /<link href="https:\/\/fonts\.googleapis\.com[^>]*>/;
/** A path prefix reported by a proxy, without characters that could end the attribute. */
const PREFIX = /^(\/[\w.-]+)+$/;

interface Board {
  readonly app: Hono;
  add(adapter: BullMQAdapter): void;
}

/**
 * bull-board over the raw BullMQ jobs. Its own buttons would drop follow-ups or run a key twice. Viewers therefore see no
 * buttons. For operators, retry and promote enqueue the object of the job; other actions are rejected. Queues appear when
 * their controllers or workflows are announced.
 */
export function jobBoard(access: QueueAccess, cluster: string): Hono<ApiEnv> {
  const boards = { looking: openBoard(), operating: openBoard() };
  /** By queue name, so that concurrent requests add each queue once. */
  const shown = new Map<string, Promise<void>>();
  const show = async (controller: Parameters<QueueAccess["rawQueues"]>[0]) => {
    const queues = await access.rawQueues(controller);
    for (const [shard, { queue }] of queues.entries()) {
      // The shards of a queue share a name, so the board needs a prefix.
      const prefix = queues.length === 1 ? "" : `shard ${shard}: `;
      const options = {
        prefix,
        externalJobUrl: ({ data }: { readonly data?: unknown }) => objectLink(data),
      };
      for (const [board, readOnlyMode] of [
        [boards.looking, true],
        [boards.operating, false],
      ] as const) {
        const adapter = new BullMQAdapter(queue, { ...options, readOnlyMode });
        adapter.getJobLogs = async (id) =>
          await readJobLog(access, cluster, (await queue.getJob(id))?.data);
        board.add(adapter);
      }
    }
  };
  const refresh = async () => {
    const [controllers, workflows] = await Promise.all([
      access.controllers(cluster),
      access.workflows(cluster),
    ]);
    const queuesOfRuns = workflows.map(({ name }) => ({ cluster, name: queueOfWorkflow(name) }));
    for (const controller of [...controllers, ...queuesOfRuns]) {
      const { name } = controller;
      const showing = shown.get(name) ?? show(controller);
      shown.set(name, showing);
      try {
        await showing;
      } catch (error) {
        // The next request tries again.
        shown.delete(name);
        throw error;
      }
    }
  };
  const app = new Hono<ApiEnv>();
  app.get(`${PATH}/`, (context) => context.redirect(PATH));
  app.get(`${PATH}/${NAMING}`, (context) =>
    context.body(NAMING_SCRIPT, 200, {
      "content-type": "text/javascript; charset=utf-8",
      "cache-control": "no-cache",
    }),
  );
  app.use(`${PATH}/*`, async (context, next) => {
    const { method, path } = context.req;
    const mayOperate = allows(context.get("caller"), "operator");
    if (!LOOKING.includes(method)) {
      const job = mayOperate && method === "PUT" ? jobOf(path) : undefined;
      if (job === undefined) return answerMethod(context, LOOKING);
      await requestAgain(access, context, { cluster, ...job });
      return context.body(null, 204);
    }
    await refresh();
    const board = boards[mayOperate ? "operating" : "looking"];
    const response = await board.app.fetch(withSmallPage(context.req.raw));
    // Another route may serve the path.
    if (response.status === 404 && !path.startsWith(`${PATH}/api/`)) return await next();
    return await tidy(context, response);
  });
  return app;
}

function openBoard(): Board {
  const adapter = new HonoAdapter(serveStatic);
  adapter.setBasePath(PATH);
  const { addQueue } = createBullBoard({
    queues: [],
    serverAdapter: adapter,
    options: {
      uiConfig: {
        boardTitle: "Raw jobs",
        miscLinks: [{ text: "Dashboard", url: "../" }],
        dateFormats: DATES,
      },
    },
  });
  return { app: new Hono().route(PATH, adapter.registerPlugin()), add: addQueue };
}

/** The board reads any number of jobs, and fails on values that it does not expect. */
function withSmallPage(request: Request): Request {
  const url = new URL(request.url);
  const query = url.searchParams;
  const bound = (name: string, most: number, otherwise: number) => {
    const value = Number(query.get(name) ?? otherwise);
    const isValid = Number.isInteger(value) && value >= 1;
    query.set(name, String(isValid ? Math.min(value, most) : otherwise));
  };
  bound("page", MOST_PAGES, 1);
  bound("jobsPerPage", MOST_JOBS, 10);
  if (decoded(query.get("activeQueue") ?? "") === undefined) query.delete("activeQueue");
  if (!STATUSES.has(query.get("status") ?? "")) query.delete("status");
  return new Request(url, request);
}

/** Undefined for malformed percent-encoding. */
function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** Returns errors as problems, and a page without foreign hosts that works below a path prefix. */
async function tidy(context: Context, response: Response): Promise<Response> {
  const type = response.headers.get("content-type") ?? "";
  if (response.status >= 400 && type !== PROBLEM) {
    const code = response.status < 500 ? "not_found" : "internal";
    const detail = `${context.req.path}: status ${response.status} from the job board`;
    return answerProblem(context, new KonvergeError(code, detail));
  }
  if (!type.startsWith("text/html")) return response;
  const prefix = context.req.header("x-forwarded-prefix") ?? "";
  const base = PREFIX.test(prefix) ? BASE.replace(PATH, `${prefix}${PATH}`) : BASE;
  context.header("content-security-policy", POLICY);
  const page = (await response.text()).replace(FONTS, "").replace(BASE, base);
  return context.html(page.replace(ROOT, `${BAR}${ADDED}${ROOT}`));
}

/** The job of a retry or promote button. */
function jobOf(path: string): { readonly queue: string; readonly job: string } | undefined {
  const match = /^\/jobs\/api\/queues\/([^/]+)\/([^/]+)\/(?:retry\/[a-z-]+|promote)$/.exec(path);
  const [queue, job] = match?.slice(1).map(decoded) ?? [];
  return queue === undefined || job === undefined ? undefined : { queue, job };
}

/** Enqueues the object of a job. BullMQ's own retry could start a running key again. @throws KonvergeError `not_found` */
async function requestAgain(
  access: QueueAccess,
  context: Context<ApiEnv>,
  {
    cluster,
    queue: name,
    job: id,
  }: { readonly cluster: string; readonly queue: string; readonly job: string },
): Promise<void> {
  if (workflowOfQueue(name) !== undefined) {
    const detail = `"${name}" is a workflow queue; use the run page or \`konverge run\``;
    throw new KonvergeError("invalid_request", detail);
  }
  const { queue, announced } = await access.find(cluster, name);
  const raw = await access.rawQueues(announced);
  const jobs = await Promise.all(raw.map((each) => each.queue.getJob(id)));
  const text = keyTextOf(jobs.find((job) => job !== undefined)?.data);
  if (text === undefined) {
    throw new KonvergeError("not_found", `queue "${name}" has no request with the ID "${id}"`);
  }
  const key = parseKey(text);
  const caller = context.get("caller");
  const { name: by, via } = caller;
  const reason = "raw job view";
  const trigger = { kind: "http", by: via === "local" ? "http" : by, reason } as const;
  await queue.request(key, trigger, { class: classFor(caller, undefined, "interactive") });
  access.audit.gather({ action: "reconcile", ...placeOf(key), cluster, count: 1, by });
}

/**
 * Returns the log of the object or run of a job as lines of text. BullMQ's own log of jobs stays empty: it would cost each
 * line a command, and end with the job.
 */
async function readJobLog(access: QueueAccess, cluster: string, data: unknown): Promise<string[]> {
  const text = keyTextOf(data);
  if (text === undefined) return [];
  const key = parseKey(text);
  const run = runOfKey(key);
  if (run !== undefined) {
    const { workflows } = await access.runs(cluster);
    const lines = await workflows.logs(run);
    return lines.map(({ atMs, step, ...line }) =>
      lineText({ ...line, at: new Date(atMs).toISOString(), origin: step }),
    );
  }
  const { queue } = await access.find(cluster, key.controller);
  const lines = await readObjectLog(queue, key);
  return lines.map(({ attempt, ...line }) => lineText({ ...line, origin: `attempt ${attempt}` }));
}

function lineText({
  at,
  level,
  origin,
  message,
  fields,
}: {
  readonly at: string;
  readonly level: string;
  readonly origin: string | undefined;
  readonly message: string;
  readonly fields?: object | undefined;
}): string {
  const place = origin === undefined ? "" : `[${origin}] `;
  const more = fields === undefined ? "" : ` ${JSON.stringify(fields)}`;
  return `${at} ${level} ${place}${message}${more}`;
}

/** Returns the link to the object or run of a job, relative to the board. */
function objectLink(data: unknown): { readonly displayText: string; readonly href: string } {
  const key = keyTextOf(data);
  if (key === undefined) return { displayText: "Dashboard", href: "../" };
  const [controller = "", cluster, , namespace, name] = key.split("/");
  const workflow = workflowOfQueue(controller);
  // A spread step has no page of its own.
  if (workflow !== undefined && runOfKey(parseKey(key))?.workflow !== workflow) {
    return { displayText: "Dashboard", href: "../" };
  }
  if (workflow !== undefined) {
    return { displayText: "Run", href: `../runs/${workflow}/${cluster}/${name}` };
  }
  return {
    displayText: "History",
    href: `../objects/${cluster}/${controller}/${namespace}/${name}`,
  };
}

/** Foreign jobs can contain any data. */
function keyTextOf(data: unknown): string | undefined {
  const { key } = (data ?? {}) as { readonly key?: unknown };
  return typeof key === "string" && key.split("/").length === 5 ? key : undefined;
}
