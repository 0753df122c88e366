import type {
  AcceptedReconcile,
  MutationDetail,
  ObjectPlan,
  ReconcileState,
  RunDetail,
  RunUpdate,
} from "@konverge/contracts";
import { ApiCalls, type ClientOptions } from "./api-calls.ts";
import type { Client, ControllerObject, ScheduleName } from "./client.ts";
import { codedRuns, codedSchedules } from "./coded-runs.ts";
import { streamEvents } from "./event-stream.ts";
import { RunCodec } from "./run-codec.ts";
import { randomKey } from "./send-request.ts";

/** Three heartbeats of the event stream. */
const SILENCE_MS = 45_000;

/** Creates a client of the HTTP API. It keeps no connection open between calls. */
export function createClient(options: ClientOptions): Client {
  const api = new ApiCalls(options);
  const codec = options.codec && new RunCodec(options.codec);
  return {
    reconciles: reconciles(api),
    mutations: mutations(api),
    objects: objects(api),
    approvals: approvals(api),
    drift: drift(api),
    runs: runs(api, codec),
    schedules: schedules(api, codec),
    attempts: { list: api.pages("/v1/attempts") },
    controllers: {
      list: (query, read) => api.get("/v1/controllers", query, read),
      rollups: (query, read) => api.get("/v1/rollups", query, read),
      activity: (query, read) => api.get("/v1/activity", query, read),
      actions: (query, read) => api.get("/v1/operator-actions", query, read),
    },
    queues: {
      list: (query, read) => api.get("/v1/queues", query, read),
      pauses: (query, read) => api.get("/v1/pauses", query, read),
      pause: (action, write) => api.post("/v1/pauses", action, write),
      resume: (action, write) => api.post("/v1/pauses/resume", action, write),
    },
    clusters: { list: (read) => api.get("/v1/clusters", undefined, read) },
    workers: { list: (query, read) => api.get("/v1/workers", query, read) },
    guards: guards(api),
    notifications: { list: (query, read) => api.get("/v1/notifications", query, read) },
    limits: { list: (read) => api.get("/v1/limits", undefined, read) },
    deadLetters: {
      list: api.pages("/v1/dead-letters"),
      release: (action, write) => api.post("/v1/dead-letters/release", action, write),
    },
    contention: { list: (query, read) => api.get("/v1/contention", query, read) },
    audit: { list: api.pages("/v1/audit") },
    overview: (query, read) => api.get("/v1/overview", query, read),
    whoami: (read) => api.get("/v1/whoami", undefined, read),
    events: (query, { signal, lastEventId } = {}) =>
      streamEvents({
        sender: api.sender,
        call: { path: "/v1/events", query: { ...query }, signal },
        lastEventId,
        retry: api.retry,
        silenceMs: SILENCE_MS,
        random: api.random,
        sleep: api.sleep,
      }),
  };
}

function reconciles(api: ApiCalls): Client["reconciles"] {
  const at = (id: string) => `/v1/reconciles/${encode(id)}`;
  const waiting = {
    hasEnded: ({ phase }: ReconcileState) => phase === "finished",
    phaseOf: ({ phase }: ReconcileState) => phase,
  };
  return {
    create: (body, write) => api.post<AcceptedReconcile>("/v1/reconciles", body, write),
    createMany: (items, write) => api.post("/v1/reconciles/batch", { items }, write),
    get: (id, read) => api.get(at(id), undefined, read),
    wait: (id, wait) => api.wait(at(id), id, waiting, wait),
    list: api.pages("/v1/reconciles"),
    cancel: (id, action, write) => api.post(`${at(id)}/cancel`, action, write),
  };
}

function mutations(api: ApiCalls): Client["mutations"] {
  const root = "/v1/mutations";
  const at = (id: string) => `${root}/${encode(id)}`;
  const waiting = {
    hasEnded: ({ endedAt }: MutationDetail) => endedAt !== undefined,
    phaseOf: ({ state }: MutationDetail) => state,
  };
  return {
    submit: (mutation, write) => api.post(root, mutation, write),
    submitAll: (items, write) => api.post(`${root}/batch`, { items }, write),
    get: (id, read) => api.get(at(id), undefined, read),
    wait: (id, wait) => api.wait(at(id), id, waiting, wait),
    list: api.pages(root),
    cancel: (id, write) => api.delete(at(id), write),
    kinds: (query, read) => api.get("/v1/mutation-kinds", query, read),
  };
}

const PLAN_WAITING = {
  hasEnded: ({ state }: ObjectPlan) => state !== "waiting" && state !== "running",
  phaseOf: ({ state }: ObjectPlan) => state,
};

function objects(api: ApiCalls): Client["objects"] {
  return {
    list: api.pages("/v1/keys"),
    get: (object, read) => api.get(pathOf(object), undefined, read),
    attempts: (object, read) => api.get(`${pathOf(object)}/attempts`, undefined, read),
    attempt: (object, epoch, read) =>
      api.get(`${pathOf(object)}/attempts/${epoch}`, undefined, read),
    recording: (object, epoch, read) =>
      api.get(`${pathOf(object)}/attempts/${epoch ?? "latest"}/recording`, undefined, read),
    logs: (object, query, read) => api.get(`${pathOf(object)}/logs`, query, read),
    live: (object, read) => api.get(`${pathOf(object)}/live`, undefined, read),
    contention: (object, read) => api.get(`${pathOf(object)}/contention`, undefined, read),
    explain: (object, read) => api.get(`${pathOf(object)}/explanation`, undefined, read),
    plan: async (object, options = {}) => {
      const path = `${pathOf(object)}/plans`;
      const query = options.class === undefined ? "" : `?class=${options.class}`;
      const first = await api.post<ObjectPlan>(`${path}${query}`, undefined, options);
      if (PLAN_WAITING.hasEnded(first)) return first;
      return await api.wait(`${path}/${first.id}`, `plan ${first.id}`, PLAN_WAITING, options);
    },
    plans: (object, read) => api.get(`${pathOf(object)}/plans`, undefined, read),
    reconcile: (object, body = {}, write) => api.post(`${pathOf(object)}/reconcile`, body, write),
    pause: (object, action, write) => api.post(`${pathOf(object)}/pause`, action, write),
    resume: (object, action, write) => api.post(`${pathOf(object)}/resume`, action, write),
  };
}

function approvals(api: ApiCalls): Client["approvals"] {
  const at = (object: ControllerObject) => pathOf(object).replace("/objects/", "/approvals/");
  return {
    list: (query, read) => api.get("/v1/approvals", query, read),
    get: (object, read) => api.get(at(object), undefined, read),
    approve: (object, decision, write) => api.post(`${at(object)}/approve`, decision, write),
    reject: (object, decision, write) => api.post(`${at(object)}/reject`, decision, write),
  };
}

function drift(api: ApiCalls): Client["drift"] {
  const at = (object: ControllerObject) => pathOf(object).replace("/objects/", "/drift/");
  return {
    list: (query, read) => api.get("/v1/drift", query, read),
    get: (object, read) => api.get(at(object), undefined, read),
  };
}

function runs(api: ApiCalls, codec: RunCodec | undefined): Client["runs"] {
  const plain = plainRuns(api);
  return codec === undefined ? plain : codedRuns(plain, codec);
}

function plainRuns(api: ApiCalls): Client["runs"] {
  const at = (id: string) => `/v1/runs/${encode(id)}`;
  const waiting = {
    hasEnded: ({ endedAt }: RunDetail) => endedAt !== undefined,
    phaseOf: ({ status }: RunDetail) => status,
  };
  const stateOf = ({ status, steps, round, heartbeatAt }: RunDetail) => {
    const beat = heartbeatAt === undefined ? 0 : Date.parse(heartbeatAt);
    return `${status}/${steps.length}${round === undefined ? "" : `/${round}`}~${beat}`;
  };
  return {
    start: (body, write) => api.post("/v1/runs", body, write),
    list: api.pages("/v1/runs"),
    get: (id, read) => api.get(at(id), undefined, read),
    logs: (id, read) => api.get(`${at(id)}/logs`, undefined, read),
    wait: (id, wait) => api.wait(at(id), id, waiting, wait),
    watch: (id, wait) => api.poll(at(id), id, { ...waiting, stateOf }, wait),
    signal: (id, message, write) => api.post(`${at(id)}/signal`, message, write),
    update(id, { id: given, ...update }, wait) {
      const updateId = given ?? randomKey();
      const answering = {
        id: `update ${updateId}`,
        hasEnded: ({ status }: RunUpdate) => status === "accepted",
        phaseOf: ({ status }: RunUpdate) => status,
      };
      return api.changeUntil(`${at(id)}/update`, { ...update, id: updateId }, answering, wait);
    },
    cancel: (id, action, write) => api.post(`${at(id)}/cancel`, action, write),
    pause: (id, action, write) => api.post(`${at(id)}/pause`, action, write),
    resume: (id, action, write) => api.post(`${at(id)}/resume`, action, write),
    raise: (id, action, write) => api.post(`${at(id)}/raise`, action, write),
    act: (action, write) => api.post("/v1/runs/actions", action, write),
    terminate: (id, action, write) => api.post(`${at(id)}/terminate`, action, write),
    retry: (id, action, write) => api.post(`${at(id)}/retry`, action, write),
    history: (id, read) => api.get(`${at(id)}/history`, undefined, read),
    histories: api.pages("/v1/run-histories"),
  };
}

function schedules(api: ApiCalls, codec: RunCodec | undefined): Client["schedules"] {
  const plain = plainSchedules(api);
  return codec === undefined ? plain : codedSchedules(plain, codec);
}

function plainSchedules(api: ApiCalls): Client["schedules"] {
  const at = ({ cluster = "default", name }: ScheduleName) =>
    `/v1/schedules/${encode(cluster)}/${encode(name)}`;
  return {
    list: (query, read) => api.get("/v1/schedules", query, read),
    get: (schedule, read) => api.get(at(schedule), undefined, read),
    pause: (schedule, action, write) => api.post(`${at(schedule)}/pause`, action, write),
    resume: (schedule, action, write) => api.post(`${at(schedule)}/resume`, action, write),
    trigger: (schedule, action, write) => api.post(`${at(schedule)}/trigger`, action, write),
    backfill: (schedule, action, write) => api.post(`${at(schedule)}/backfill`, action, write),
  };
}

function guards(api: ApiCalls): Client["guards"] {
  const at = (cluster: string) => `/v1/guards/${encode(cluster)}`;
  return {
    list: (query, read) => api.get("/v1/guards", query, read),
    get: (cluster, read) => api.get(at(cluster), undefined, read),
    isolate: (cluster, action, write) => api.post(`${at(cluster)}/isolate`, action, write),
    reset: (cluster, action, write) => api.post(`${at(cluster)}/reset`, action, write),
    setRate: (cluster, body, write) => api.put(`${at(cluster)}/rate`, body, write),
  };
}

/** `_` is the namespace of cluster-scoped objects. */
function pathOf(object: ControllerObject): string {
  const { cluster = "default", controller, namespace = "_", name } = object;
  return `/v1/objects/${[cluster, controller, namespace, name].map(encode).join("/")}`;
}

function encode(segment: string): string {
  return encodeURIComponent(segment);
}
