import { defined } from "@konverge/core";
import type { RunRef } from "../define/run-ref.ts";
import { codeText } from "./code-version.ts";
import { fenced, hasEnded, type JournalCall, type ScriptItem } from "./journal-call.ts";
import { isOfRound, markStateOf } from "./mark-state.ts";
import { news, readSignals, refuse, refuseUpdate } from "./redis-run-inbox.ts";
import { leaveRun } from "./redis-run-leave.ts";
import type { RedisRuns } from "./redis-runs.ts";
import { admitSpread, appendSpreadLog, isSpreadAwaited } from "./redis-spread-steps.ts";
import { packRecord, unpackRecord } from "./packed-record.ts";
import { readHeld, readSteps, textOf } from "./run-fields.ts";
import type {
  Claim,
  Claimed,
  Held,
  MarkState,
  RunJournalStore,
  StepMark,
} from "./run-journal-store.ts";
import type { RunStatus, StepProgress, StepRecord } from "./run-record.ts";
import { announceCodeScript } from "./scripts/announce-code.ts";
import { appendLogScript } from "./scripts/append-log.ts";
import { claimScript, type ClaimAnswer } from "./scripts/claim.ts";
import { commitStepsScript, type StepCommitAnswer } from "./scripts/commit-steps.ts";
import { commitScript } from "./scripts/commit.ts";
import { enterScript } from "./scripts/enter.ts";
import { followersOf } from "./followers-of.ts";
import { keepInputScript } from "./scripts/keep-input.ts";
import { leaveScript, type LeaveAnswer } from "./scripts/leave.ts";
import { noteScript } from "./scripts/note.ts";
import { publishScript } from "./scripts/publish.ts";
import { relabelScript } from "./scripts/relabel.ts";
import { watchScript } from "./scripts/watch.ts";
import { MAX_SHARED, shareCalls } from "./share-calls.ts";
import { memberOf } from "./wait-names.ts";

export function createRedisRunJournal(runs: RedisRuns): RunJournalStore {
  const shared: SharedCalls = {
    claim: shareCalls((each) => claimEach(runs, each)),
    commitSteps: shareCalls((each) => runs.evaluate(commitStepsScript, { each })),
    leave: shareCalls((each) => runs.evaluate(leaveScript, { each })),
  };
  let installation: Promise<string> | undefined;
  return {
    scope: runs.scope,
    async installation() {
      const finding = (installation ??= findInstallation(runs));
      // A failure is not cached.
      finding.catch(() => (installation = undefined));
      return await finding;
    },
    announce: (workflow, worker, code) => announce(runs, workflow, worker, code),
    async retract(workflow, worker) {
      const { codes } = runs.namesOf(workflow);
      await runs.call((redis) => redis.hdel(codes, worker));
    },
    claim: (ref, claimed) => claim(runs, ref, claimed, shared),
    enter: (held, slot) => enter(runs, held, slot),
    holds: (held) => holds(runs, held),
    statesOf: async (marks) => await Promise.all(marks.map((mark) => stateOf(runs, mark))),
    keepInput: (held, input) => keepInput(runs, held, input),
    async commit(held, step, record, options = {}) {
      const text = packRecord(record);
      return held.code === undefined && isPlain(options) && text.length <= MAX_SHARED
        ? await commitStep(runs, held, shared, { step, record: text, options })
        : await commit(runs, held, { step, record: text, options });
    },
    publish: (held, output) => publish(runs, held, output),
    relabel: (held, labels) => relabel(runs, held, labels),
    note: (held, step, progress) => note(runs, held, step, progress),
    readSignals: (ref, name) => readSignals(runs, ref, name),
    refuse: (held, name, refused) => refuse(runs, held, name, refused),
    appendLog: (held, lines, logged) => appendLog(runs, held, lines, logged),
    appendSpreadLog: (spread, lines) => appendSpreadLog(runs, spread, lines),
    admitSpread: (spread, hold) => admitSpread(runs, spread, hold),
    isSpreadAwaited: (spread) => isSpreadAwaited(runs, spread),
    news: (held, awaited) => news(runs, held, awaited),
    refuseUpdate: (held, taken, refusal) => refuseUpdate(runs, held, taken, refusal),
    watch: (held, objects) => watch(runs, held, objects),
    releaseEnd: (workflow, key) => releaseEnd(runs, workflow, key),
    leave: (held, how, output) => leaveRun(runs, held, { how, output, share: shared.leave }),
  };
}

async function findInstallation(runs: RedisRuns): Promise<string> {
  const { installation } = runs.namesOf("");
  await runs.call((redis) => redis.setnx(installation, crypto.randomUUID()));
  const id = await runs.call((redis) => redis.get(installation));
  return id ?? (await findInstallation(runs));
}

const announce: JournalCall<"announce"> = async (runs, workflow, worker, code) => {
  const { codes, statuses } = runs.namesOf(workflow);
  return await runs.evaluate(announceCodeScript, {
    keys: { codes, blocked: `${statuses}blocked` },
    args: { worker, code: codeText(code), slots: code.concurrency?.runs ?? "", statuses },
  });
};

/** The calls that executions of this process share. */
interface SharedCalls {
  readonly claim: (call: ScriptItem<typeof claimScript>) => Promise<ClaimAnswer>;
  readonly commitSteps: (call: ScriptItem<typeof commitStepsScript>) => Promise<StepCommitAnswer>;
  readonly leave: (call: ScriptItem<typeof leaveScript>) => Promise<LeaveAnswer>;
}

async function claimEach(
  runs: RedisRuns,
  each: readonly ScriptItem<typeof claimScript>[],
): Promise<readonly ClaimAnswer[]> {
  const answers = await runs.evaluate(claimScript, { each });
  const claims = answers.map(async (answer, at) =>
    answer.kind === "alone" ? await claimEach(runs, each.slice(at, at + 1)) : [answer],
  );
  return (await Promise.all(claims)).flat();
}

async function claim(
  runs: RedisRuns,
  ref: RunRef,
  { lease, owner, anew = false, code }: Claim,
  shared: SharedCalls,
): Promise<Claimed> {
  const { workflow, id } = ref;
  const { wakes, codes, fences, runRoot, statuses, ...names } = runs.namesOf(workflow);
  const text = code === undefined ? "" : codeText(code);
  const call = {
    run: names.run(id),
    steps: names.steps(id),
    signals: names.signals(id),
    signalNames: names.signalNames(id),
    wakes,
    fences,
    codes,
    lease,
    owner,
    anew,
    code: text,
    id,
    runRoot,
    statuses,
  };
  const answer = await shared.claim(call);
  if (answer.kind === "held") {
    const held = readHeld(ref, answer);
    const isOther = code !== undefined && code.version !== held.run.version;
    return { kind: "held", ...held, ...(isOther ? { code: code.version } : {}) };
  }
  if (answer.kind === "unfit") return answer;
  if (answer.kind === "ended") return { kind: "ended", ...followersOf(workflow, answer) };
  return { kind: answer.kind };
}

async function holds(runs: RedisRuns, { workflow, id, epoch, run }: Held): Promise<boolean> {
  const name = runs.namesOf(workflow).run(id);
  const [current, createdAt, status] = await runs.call((redis) =>
    redis.hmget(name, "epoch", "createdAt", "status"),
  );
  const isSame = Number(current) === epoch && Number(createdAt) === run.createdAtMs;
  return isSame && !hasEnded(status);
}

async function stateOf(runs: RedisRuns, mark: StepMark): Promise<MarkState> {
  const { workflow, id, step, created } = mark;
  const names = runs.namesOf(workflow);
  const [[createdAt, round, status], isRecorded] = await Promise.all([
    runs.call((redis) => redis.hmget(names.run(id), "createdAt", "round", "status")),
    runs.call((redis) => redis.hexists(names.steps(id), step)),
  ]);
  // Another run may have the id by now.
  const run = { createdAtMs: Number(createdAt), ...(round ? { round: Number(round) } : {}) };
  const known = isOfRound(mark, run) ? (status as RunStatus) : undefined;
  const isActive = known !== undefined && !hasEnded(known);
  if (isActive && (isRecorded === 0 || created)) return "live";
  if (known === undefined || known === "done") return "settled";
  const records = await runs.call((redis) => redis.hgetall(names.steps(id)));
  return markStateOf(known, readSteps(Object.entries(records).flat()).steps, mark);
}

const enter: JournalCall<"enter"> = async (runs, held, { slots, group }) => {
  const { workflow, id, epoch } = held;
  const { wakes, statuses, ...names } = runs.namesOf(workflow);
  const kind = await runs.evaluate(enterScript, {
    keys: { run: names.run(id), steps: names.steps(id), wakes },
    args: { epoch, id, slots, group, member: memberOf(held), statuses },
  });
  if (kind === "fenced") throw fenced(held);
  return kind;
};

const keepInput: JournalCall<"keepInput"> = async (runs, held, input) => {
  const { workflow, id, epoch } = held;
  const answer = await runs.evaluate(keepInputScript, {
    keys: { run: runs.namesOf(workflow).run(id) },
    args: { epoch, input: JSON.stringify(input) },
  });
  if (answer.kind === "fenced") throw fenced(held);
  return JSON.parse(answer.input) as unknown;
};

interface CommitCall {
  readonly step: string;
  readonly record: string;
  readonly options: NonNullable<Parameters<RunJournalStore["commit"]>[3]>;
}

/** True for a record that changes nothing else. */
function isPlain({ taken, update, cancels, warnings, output }: CommitCall["options"]): boolean {
  return (taken ?? update ?? cancels ?? warnings ?? output) === undefined;
}

/** Records a step together with those of other runs. */
async function commitStep(
  runs: RedisRuns,
  held: Held,
  { commitSteps }: SharedCalls,
  { step, record, options }: CommitCall,
): Promise<StepRecord> {
  const { workflow, id, epoch } = held;
  const { run, steps } = runs.namesOf(workflow);
  const answer = await commitSteps({ run: run(id), steps: steps(id), epoch, step, record });
  if (answer.kind === "fenced") throw fenced(held);
  if (answer.kind === "exists") return parseRecord(answer.record);
  options.onStatus?.(answer.isPausing);
  const { seq, atMs } = answer;
  return { ...parseRecord(record), seq, atMs };
}

function parseRecord(text: string): StepRecord {
  return unpackRecord(JSON.parse(text) as StepRecord).record;
}

async function commit(
  runs: RedisRuns,
  held: Held,
  { step, record, options }: CommitCall,
): Promise<StepRecord> {
  const { workflow, id, epoch } = held;
  const { taken, update = "", cancels, warnings, output } = options;
  const { cancelling, ...names } = runs.namesOf(workflow);
  const answer = await runs.evaluate(commitScript, {
    keys: {
      run: names.run(id),
      steps: names.steps(id),
      signals: names.signals(id),
      signalNames: names.signalNames(id),
      cancelling,
      answers: names.answers(id),
    },
    args: {
      epoch,
      step,
      record,
      taken: taken?.seq ?? "",
      takenName: taken?.name ?? "",
      update,
      cancels: cancels === undefined ? "" : id,
      cancelNumber: cancels ?? "",
      warnings: textOf(warnings),
      published: output?.published ?? "",
      code: held.code === undefined ? "" : String(held.code),
    },
  });
  // A missing signal was consumed by the execution that holds the run now.
  if (!("record" in answer)) throw fenced(held);
  if (answer.kind === "committed") options.onStatus?.(answer.isPausing);
  return parseRecord(answer.record);
}

const publish: JournalCall<"publish"> = async (runs, held, { published }) => {
  const { workflow, id, epoch } = held;
  const kind = await runs.evaluate(publishScript, {
    keys: { run: runs.namesOf(workflow).run(id) },
    args: { epoch, published },
  });
  if (kind === "fenced") throw fenced(held);
};

const relabel: JournalCall<"relabel"> = async (runs, held, labels) => {
  const { workflow, id, epoch } = held;
  const { statuses, ...names } = runs.namesOf(workflow);
  const kind = await runs.evaluate(relabelScript, {
    keys: { run: names.run(id) },
    args: { epoch, id, labels: JSON.stringify(labels), statuses },
  });
  if (kind === "fenced") throw fenced(held);
};

const note: JournalCall<"note"> = async (runs, held, step, progress) => {
  const { attempts, delayMs, keep = false, silentMs, running, ...others } = progress;
  // The script that looks for silent bodies expects it first.
  const more = { ...defined({ running }), ...others };
  const names = runs.namesOf(held.workflow);
  const answer = await runs.evaluate(noteScript, {
    keys: { run: names.run(held.id), steps: names.steps(held.id), silent: names.silent },
    args: {
      id: held.id,
      epoch: held.epoch,
      step,
      attempts,
      delayMs: Math.ceil(delayMs),
      keep,
      more: Object.keys(more).length === 0 ? "" : JSON.stringify(more),
      beatAtMs: more.heartbeat?.atMs ?? "",
      silentMs: silentMs ?? "",
    },
  });
  if (answer.kind === "fenced") throw fenced(held);
  return JSON.parse(answer.progress) as StepProgress;
};

const appendLog: JournalCall<"appendLog"> = async (runs, held, lines, logged) => {
  const { workflow, id, epoch } = held;
  const names = runs.namesOf(workflow);
  const kind = await runs.evaluate(appendLogScript, {
    keys: { run: names.run(id), logs: names.logs(id) },
    args: { epoch, createdAt: "", logged },
    each: lines.map((line) => ({ text: JSON.stringify(line) })),
  });
  if (kind === "fenced") throw fenced(held);
};

const watch: JournalCall<"watch"> = async (runs, held, objects) => {
  const { workflow, id, epoch } = held;
  const { waitKinds, rechecks, waitRoot, ...names } = runs.namesOf(workflow);
  const kind = await runs.evaluate(watchScript, {
    keys: { run: names.run(id), waitKinds, rechecks },
    args: { epoch, member: memberOf(held), id, waitRoot, objects: objects.join(" ") },
  });
  if (kind === "fenced") throw fenced(held);
};

async function releaseEnd(runs: RedisRuns, workflow: string, key: string): Promise<void> {
  const { last, lastChecks } = runs.namesOf(workflow);
  await runs.call((redis) =>
    redis
      .multi()
      .zrem(lastChecks, key)
      .pexpire(last(key), runs.keptOf(workflow).retentionMs)
      .exec(),
  );
}
