import type { SignInSettings } from "@konverge/contracts";
import { defined, ERRORS, isKonvergeError, KonvergeError, type BucketLimits } from "@konverge/core";
import type { GuardControl } from "@konverge/guard";
import { REJECTIONS, type Metrics } from "@konverge/telemetry";
import { Hono, type Context, type MiddlewareHandler } from "hono";
import { secureHeaders } from "hono/secure-headers";
import { z } from "zod";
import { Admission } from "./http/admission.ts";
import { answerUnserved } from "./http/answer-unserved.ts";
import { auditRoutes } from "./routes/audit-routes.ts";
import { createAuthenticator, type ApiEnv, type Authenticator } from "./access/authenticate.ts";
import { isUnrestricted, type Caller } from "./access/caller.ts";
import type { KubernetesReviews } from "./access/kubernetes-reviews.ts";
import { dashboardPages, type PageFrame } from "./pages/dashboard-pages.ts";
import { describeApi } from "./http/describe-api.ts";
import { ERROR_PAGE, errorPage } from "./http/error-page.ts";
import { explanationRoutes } from "./routes/explanation-routes.ts";
import { eventRoutes } from "./routes/event-routes.ts";
import { deadLetterRoutes } from "./routes/dead-letter-routes.ts";
import { clusterRoutes } from "./routes/cluster-routes.ts";
import { fleetRoutes } from "./routes/fleet-routes.ts";
import { guardRoutes } from "./routes/guard-routes.ts";
import { limitRoutes } from "./routes/limit-routes.ts";
import { historyRoutes } from "./routes/history-routes.ts";
import { jobBoard } from "./pages/job-board.ts";
import { isJsonResponse } from "./http/json-response.ts";
import { mountRoutes } from "./http/mount-routes.ts";
import { notificationRoutes } from "./routes/notification-routes.ts";
import { objectActionRoutes } from "./routes/object-action-routes.ts";
import { mutationRoutes } from "./routes/mutation-routes.ts";
import { objectRoutes } from "./routes/object-routes.ts";
import { driftRoutes } from "./routes/drift-routes.ts";
import { approvalRoutes } from "./routes/approval-routes.ts";
import { planRoutes } from "./routes/plan-routes.ts";
import { overviewRoutes } from "./routes/overview-routes.ts";
import { answerProblem } from "./http/problem.ts";
import type { QueueAccess } from "./queues/queue-access.ts";
import { pauseRoutes } from "./routes/pause-routes.ts";
import { queueRoutes } from "./routes/queue-routes.ts";
import { reconcileRoutes } from "./routes/reconcile-routes.ts";
import { createInboundSecrets, type InboundSecrets } from "./inbound/inbound-secrets.ts";
import { sourceRoutes } from "./routes/source-routes.ts";
import { createRefusedChanges } from "./http/refused-change.ts";
import { readRoute, type Route } from "./http/route.ts";
import { runActionRoutes } from "./routes/run-action-routes.ts";
import { runRoutes } from "./routes/run-routes.ts";
import { scheduleRoutes } from "./routes/schedule-routes.ts";
import type { Refusal } from "./http/refusal-log.ts";
import { Scans } from "./http/scans.ts";
import { Waits } from "./http/waits.ts";
import { createUserRights } from "./rights/authorize-user.ts";
import { createOidcProvider, type SignInOptions } from "./sign-in/oidc-provider.ts";
import { signInPages } from "./sign-in/sign-in-pages.ts";
import { createSignedInUsers } from "./access/signed-in-users.ts";
import { sessionRoutes } from "./routes/session-routes.ts";

export interface ApiOptions {
  readonly access: QueueAccess;
  readonly guards: GuardControl;
  readonly metrics: Metrics;
  /** Admin token. If set, every request needs a token. */
  readonly token: string | undefined;
  /**
   * False if other machines can reach the server; every request then needs a token, even if `token` is not set. Default
   * true.
   */
  readonly isLoopback?: boolean;
  /** Set by a process that calls `fetch` itself and does not serve it: all calls are made by this user, as an admin. */
  readonly inProcess?: { readonly user: string };
  /** Accepts Kubernetes tokens. Default: none; every request then needs a token of Konverge. */
  readonly reviews?: KubernetesReviews | undefined;
  /** The OIDC provider with which users log in to the dashboard. Default: none. */
  readonly signIn?: (SignInOptions & { readonly settings: SignInSettings }) | undefined;
  /** The secrets of inbound sources. Default: none; their deliveries are rejected. */
  readonly inboundSecrets?: InboundSecrets;
  /** Rate limit per caller and process. Default 1,000 per second with a burst of 2,000. */
  readonly rate?: BucketLimits;
  /** Time after which a search returns what it has found, in ms. Default 500. */
  readonly searchMs?: number;
  /** The default cluster, also of the overview and the raw job view. */
  readonly cluster: string;
  /** Interval between heartbeats of an idle event stream, in ms. Default 15,000. */
  readonly heartbeatMs?: number;
  /** Folder of the built dashboard. Default: the folder of apps/dashboard. */
  readonly pages?: string;
  /** Receives requests that were refused for their credentials, permissions or rate. */
  readonly onRefused?: (refusal: Refusal) => void;
  /** Receives errors that callers see only as `internal`. */
  readonly onError: (error: unknown) => void;
}

/** The metrics of a process and a page of raw jobs, in simple requests. */
const PRICE_OF_PAGE = 20;
/** High enough for normal use; stops runaway scripts. */
const DEFAULT_RATE: BucketLimits = { ratePerSecond: 1_000, burst: 2_000 };

/** The API as one web-standard `fetch`, to serve or to mount in another server. */
export interface Api {
  /** `env` comes from the server. Its `outgoing`, on Node, lets the API disconnect slow readers. */
  readonly fetch: (request: Request, env?: object) => Response | Promise<Response>;
  /** From now on `/readyz` fails, and each response ends its connection, so that callers move to another process. */
  drain(): void;
  /** Ends the event streams and answers pending waits with the current state. */
  close(): void;
}

export function createApi(options: ApiOptions): Api {
  const { access, metrics, token, cluster, onError, signIn } = options;
  const { isLoopback = true, inProcess, rate = DEFAULT_RATE } = options;
  const users = signIn && createSignedInUsers(access.userSessions, signIn.settings.roles);
  const authenticator = createAuthenticator({
    tokens: access.tokens,
    sessions: access.sessions(token ?? ""),
    adminToken: token,
    isOpen: isLoopback,
    reviews: options.reviews,
    users,
    onError,
  });
  const rights =
    options.reviews && createUserRights({ access, reviews: options.reviews, home: cluster });
  const closing = new AbortController();
  const routes = routesOf(options, authenticator, closing.signal);
  const { audit, answers } = access;
  const admission = new Admission(rate);
  const mount = {
    audit,
    answers,
    admission,
    authorizeUser: rights?.authorize,
    scans: new Scans(admission, options.searchMs),
    waits: new Waits(),
    isStillValid: (caller: Caller) => authenticator.isStillValid(caller),
    closing: closing.signal,
    onError,
  };
  const app = new Hono<ApiEnv>();
  let isDraining = false;
  serveBasics(app, options, { routes, isDraining: () => isDraining });
  // The pages contain no data, and the login form must be reachable without a token.
  app.route(
    "/",
    dashboardPages({
      frameOf: async (context) => {
        if (inProcess !== undefined) return { cluster, role: "admin" };
        const caller = await authenticator.identify(context);
        return {
          ...(caller === undefined ? {} : frameFor(caller, cluster)),
          ...defined({ signIn: signIn?.settings.providerName }),
        };
      },
      ...defined({ folder: options.pages }),
    }),
  );
  if (signIn !== undefined) {
    app.route(
      "/",
      signInPages({
        settings: signIn.settings,
        provider: createOidcProvider(signIn.settings, signIn),
        sessions: access.userSessions,
        endSession: (context) => authenticator.endSession(context),
        audit,
        onFailed: (context, error) => noteFailure(options, context, error),
      }),
    );
  }
  mountRoutes(
    app,
    routes.filter(({ role }) => role === "none"),
    mount,
  );
  // All following routes require an authenticated caller.
  app.use("*", inProcess === undefined ? authenticator.middleware : asUser(inProcess.user));
  mountRoutes(
    app,
    routes.filter(({ role }) => role !== "none"),
    mount,
  );
  // The following routes show the whole installation.
  for (const path of ["/metrics", "/jobs", "/jobs/*"]) {
    app.use(path, async (context, next) => {
      const caller = context.get("caller");
      admission.admit(caller);
      if (caller.user !== undefined && rights !== undefined) {
        context.set("caller", await rights.widest(caller));
      }
      demandUnrestricted(context.get("caller"));
      admission.charge(caller, PRICE_OF_PAGE);
      await next();
    });
  }
  app.get("/metrics", async (context) =>
    context.body(await metrics.text(), 200, { "content-type": metrics.contentType }),
  );
  app.route("/", jobBoard(access, cluster));
  return {
    fetch: (request, env) => app.fetch(request, env),
    drain() {
      isDraining = true;
    },
    close: () => closing.abort(),
  };
}

const NO_SECRETS: InboundSecrets = createInboundSecrets({});

function routesOf(
  {
    access,
    guards,
    cluster,
    metrics,
    onError,
    heartbeatMs,
    inboundSecrets = NO_SECRETS,
  }: ApiOptions,
  authenticator: Authenticator,
  signal: AbortSignal,
): Route[] {
  const routes: Route[] = [
    ...sessionRoutes(authenticator),
    ...reconcileRoutes(access),
    ...mutationRoutes(access, cluster),
    ...sourceRoutes({ access, secrets: inboundSecrets, metrics, home: cluster }),
    ...objectRoutes(access),
    ...explanationRoutes({ access, guards }),
    ...planRoutes(access),
    ...approvalRoutes(access),
    ...driftRoutes(access),
    ...objectActionRoutes(access),
    ...fleetRoutes(access, cluster),
    ...clusterRoutes(access, guards),
    ...queueRoutes(access),
    ...pauseRoutes(access),
    ...deadLetterRoutes(access),
    ...runRoutes(access),
    ...runActionRoutes(access),
    ...scheduleRoutes(access),
    ...historyRoutes(access, cluster),
    ...guardRoutes({ access, guards }),
    ...limitRoutes(guards),
    ...notificationRoutes(access, cluster),
    ...overviewRoutes({ access, guards, home: cluster }),
    ...auditRoutes(access.audit),
    ...eventRoutes({
      access,
      guards,
      isStillValid: (caller) => authenticator.isStillValid(caller),
      onError,
      signal,
      heartbeatMs,
    }),
  ];
  routes.push(describeRoute(routes));
  return routes;
}

/** Serves errors, probes, the page of error codes and security headers. */
function serveBasics(
  app: Hono<ApiEnv>,
  options: ApiOptions,
  { routes, isDraining }: { readonly routes: readonly Route[]; readonly isDraining: () => boolean },
): void {
  const { access } = options;
  const refusedChange = createRefusedChanges(routes);
  app.use("*", async (context, next) => {
    await next();
    if (isDraining()) context.header("connection", "close");
  });
  app.onError(async (error, context) => {
    const refused = await refusedChange(context, error);
    if (refused !== undefined) access.audit.gather(refused);
    noteFailure(options, context, error);
    return answerProblem(context, error);
  });
  app.notFound(answerUnserved(app));
  app.get("/livez", (context) => context.text("ok\n"));
  // Without Redis, a caller gets 503 with the reason and Retry-After. A Service without ready Pods would refuse the connection.
  app.get("/readyz", (context) =>
    isDraining() ? context.text("not ready: stopping\n", 503) : context.text("ok\n"),
  );
  app.get(ERROR_PAGE, (context) => context.text(errorPage()));
  // Whether a host has TLS, also for its sibling names, is up to the operator's proxy.
  const securePage = secureHeaders({ strictTransportSecurity: false });
  app.use("*", async (context, next) => {
    if (!context.req.path.startsWith("/v1/")) return await securePage(context, next);
    await next();
    if (isJsonResponse(context.res)) return;
    context.header("x-content-type-options", "nosniff");
    context.header("cache-control", "no-store");
  });
}

/** Logs an internal error, and counts a rejected request. */
function noteFailure(
  { onError, onRefused, metrics }: ApiOptions,
  context: Context<ApiEnv>,
  error: unknown,
): void {
  const isInternal = !isKonvergeError(error) || ERRORS[error.code].httpStatus === 500;
  // A client that disconnects while it sends its body does not cause an error of the API.
  if (isInternal && !context.req.raw.signal.aborted) onError(error);
  const code = REJECTIONS.find((known) => isKonvergeError(error) && error.code === known);
  if (code === undefined) return;
  metrics.rejectedRequest(code);
  onRefused?.({ code, ...refusedBy(context) });
}

function refusedBy(context: Context<ApiEnv>): Pick<Refusal, "source" | "by"> {
  const { incoming } = (context.env ?? {}) as {
    readonly incoming?: { readonly socket?: { readonly remoteAddress?: string } };
  };
  // Undefined for a rejected token.
  const caller: Caller | undefined = context.get("caller");
  return {
    source: incoming?.socket?.remoteAddress ?? "unknown",
    ...defined({ by: caller?.name }),
  };
}

/** The route of the OpenAPI document, which is part of the document. */
function describeRoute(routes: readonly Route[]): Route {
  let document: Record<string, unknown> | undefined;
  return readRoute({
    id: "getOpenapi",
    path: "/v1/openapi.json",
    summary: "Get this document",
    answer: z.record(z.string(), z.unknown()),
    handle: async () => (document ??= describeApi(routes)),
  });
}

function asUser(name: string): MiddlewareHandler<ApiEnv> {
  return async (context, next) => {
    context.set("caller", { id: "process", name, role: "admin", scope: {}, via: "process" });
    await next();
  };
}

function demandUnrestricted(caller: Caller): void {
  if (isUnrestricted(caller)) return;
  throw new KonvergeError("forbidden", "the raw job view requires a token without a scope");
}

function frameFor({ name, role, scope, via }: Caller, home: string): PageFrame {
  const { clusters = [home] } = scope;
  return {
    cluster: clusters.includes(home) ? home : (clusters[0] ?? home),
    role,
    // Local callers have no name.
    ...(via === "local" ? {} : { name }),
    ...(via === "oidc" ? { isSignedIn: true } : {}),
  };
}
