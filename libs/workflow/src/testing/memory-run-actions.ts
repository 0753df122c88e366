import { defined } from "@konverge/core";
import type { NewRun, RunActions, Started } from "../store/run-actions.ts";
import { hasEnded, jsonCopy, requestCancel, type MemoryRuns } from "./memory-runs.ts";

export function createMemoryRunActions(runs: MemoryRuns): RunActions {
  return {
    start: async (run) => start(runs, run),

    async signal(ref, signal) {
      const run = runs.find(ref);
      if (run === undefined) return "missing";
      if (run.seen.has(signal.id)) return "duplicate";
      if (hasEnded(run)) return "ended";
      run.seen.add(signal.id);
      run.signals.push({ ...jsonCopy(signal), atMs: runs.now() });
      run.wakeSeq += 1;
      return "stored";
    },

    async cancel(ref, request) {
      const run = runs.find(ref);
      if (run === undefined) return "missing";
      if (hasEnded(run)) return "ended";
      requestCancel(run, request);
      return "requested";
    },
  };
}

function start(runs: MemoryRuns, { onExisting = "attach", ...created }: NewRun): Started {
  const { workflow, id, version, input, key, parent, by, retry } = created;
  const known = runs.find(created);
  if (known !== undefined) return { kind: "exists", run: known.view };
  const holder = key === undefined ? undefined : runs.holderOf(workflow, key);
  if (holder !== undefined) {
    if (onExisting === "attach") return { kind: "attached", id: holder.view.id };
    if (onExisting === "reject") return { kind: "rejected", id: holder.view.id };
    requestCancel(holder, { reason: `superseded by ${id}` });
    holder.next = id;
  }
  const replaces = holder?.view.id;
  runs.add({
    view: {
      workflow,
      id,
      version,
      status: "queued",
      input: jsonCopy(input),
      createdAtMs: runs.now(),
      ...defined({ key, parent, by, retry }),
    },
    epoch: 0,
    lease: 0,
    owner: "",
    died: false,
    wakeSeq: 0,
    watched: new Set(),
    ...defined({ after: replaces }),
    steps: new Map(),
    progress: new Map(),
    signals: [],
    waited: [],
    seen: new Set(),
  });
  return { kind: "created", ...defined({ replaces }) };
}
