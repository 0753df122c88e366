import { defined } from "@konverge/core";
import type { Script, ScriptCall } from "@konverge/redis";
import type { RunRef } from "../define/run-ref.ts";
import { codeText } from "./code-version.ts";
import { isOfRound, markStateOf } from "./mark-state.ts";
import type { RedisRuns } from "./redis-runs.ts";
import { endingKeys } from "./run-names.ts";
import { packRecord, unpackRecord } from "./packed-record.ts";
import { parseSignals, readHeld, readSteps, textOf } from "./run-fields.ts";
import {
  FencedError,
  type Claim,
  type Claimed,
  type Followers,
  type Held,
  type Leave,
  type MarkState,
  type RunJournalStore,
  type RunOutputText,
  type StepMark,
} from "./run-journal-store.ts";
import {
  awaitedSignals,
  isEndStatus,
  withoutPayload,
  type CancelRequest,
  type RunStatus,
  type StepProgress,
  type StepRecord,
} from "./run-record.ts";
import type { AwaitedSpread } from "./spread-step.ts";
import { admitSpreadScript } from "./scripts/admit-spread.ts";
import { announceCodeScript } from "./scripts/announce-code.ts";
import { appendLogScript } from "./scripts/append-log.ts";
import { claimScript, type ClaimAnswer } from "./scripts/claim.ts";
import { commitStepsScript, type StepCommitAnswer } from "./scripts/commit-steps.ts";
import { commitScript } from "./scripts/commit.ts";
import { continueScript } from "./scripts/continue.ts";
import { enterScript } from "./scripts/enter.ts";
import { followersOf } from "./followers-of.ts";
import { keepInputScript } from "./scripts/keep-input.ts";
import { leaveScript, type LeaveAnswer } from "./scripts/leave.ts";
import { newsScript } from "./scripts/news.ts";
import { noteScript } from "./scripts/note.ts";
import { publishScript } from "./scripts/publish.ts";
import { readSignalsScript } from "./scripts/read-signals.ts";
import { refuseSignalsScript } from "./scripts/refuse-signals.ts";
import { refuseUpdateScript } from "./scripts/refuse-update.ts";
import { relabelScript } from "./scripts/relabel.ts";
import { watchScript } from "./scripts/watch.ts";
import { READ_AT_ONCE } from "./signal-limits.ts";
import { MAX_SHARED, shareCalls } from "./share-calls.ts";
import { updateIdOf } from "./run-updates.ts";
import { memberOf } from "./wait-names.ts";

type Call<Name extends keyof RunJournalStore> = RunJournalStore[Name] extends (
  ...args: infer Args
) => infer Reply
  ? (runs: RedisRuns, ...args: Args) => Reply
  : never;

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
    leave: (held, how, output) => leave(runs, held, { how, output, shared }),
  };
}

async function findInstallation(runs: RedisRuns): Promise<string> {
  const { installation } = runs.namesOf("");
  await runs.call((redis) => redis.setnx(installation, crypto.randomUUID()));
  const id = await runs.call((redis) => redis.get(installation));
  return id ?? (await findInstallation(runs));
}

const announce: Call<"announce"> = async (runs, workflow, worker, code) => {
  const { codes, statuses } = runs.namesOf(workflow);
  return await runs.evaluate(announceCodeScript, {
    keys: { codes, blocked: `${statuses}blocked` },
    args: { worker, code: codeText(code), slots: code.concurrency?.runs ?? "", statuses },
  });
};

/** One of the items that a call of a script has. */
type Item<Of extends Script> =
  ScriptCall<Of["signature"]> extends { readonly each: readonly (infer Each)[] } ? Each : never;

/** The calls that executions of this process share. */
interface SharedCalls {
  readonly claim: (call: Item<typeof claimScript>) => Promise<ClaimAnswer>;
  readonly commitSteps: (call: Item<typeof commitStepsScript>) => Promise<StepCommitAnswer>;
  readonly leave: (call: Item<typeof leaveScript>) => Promise<LeaveAnswer>;
}

async function claimEach(
  runs: RedisRuns,
  each: readonly Item<typeof claimScript>[],
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

const enter: Call<"enter"> = async (runs, held, { slots, group }) => {
  const { workflow, id, epoch } = held;
  const { wakes, statuses, ...names } = runs.namesOf(workflow);
  const kind = await runs.evaluate(enterScript, {
    keys: { run: names.run(id), steps: names.steps(id), wakes },
    args: { epoch, id, slots, group, member: memberOf(held), statuses },
  });
  if (kind === "fenced") throw fenced(held);
  return kind;
};

const keepInput: Call<"keepInput"> = async (runs, held, input) => {
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

const publish: Call<"publish"> = async (runs, held, { published }) => {
  const { workflow, id, epoch } = held;
  const kind = await runs.evaluate(publishScript, {
    keys: { run: runs.namesOf(workflow).run(id) },
    args: { epoch, published },
  });
  if (kind === "fenced") throw fenced(held);
};

const relabel: Call<"relabel"> = async (runs, held, labels) => {
  const { workflow, id, epoch } = held;
  const { statuses, ...names } = runs.namesOf(workflow);
  const kind = await runs.evaluate(relabelScript, {
    keys: { run: names.run(id) },
    args: { epoch, id, labels: JSON.stringify(labels), statuses },
  });
  if (kind === "fenced") throw fenced(held);
};

const note: Call<"note"> = async (runs, held, step, progress) => {
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

const readSignals: Call<"readSignals"> = async (runs, { workflow, id }, name) => {
  const { signals, signalNames } = runs.namesOf(workflow);
  const texts = await runs.evaluate(readSignalsScript, {
    keys: { signals: signals(id), signalNames: signalNames(id) },
    args: { name, most: READ_AT_ONCE },
  });
  return parseSignals(texts);
};

const news: Call<"news"> = async (runs, held, { signals, children }) => {
  const { workflow, id, epoch } = held;
  const names = runs.namesOf(workflow);
  const answer = await runs.evaluate(newsScript, {
    keys: { run: names.run(id), signals: names.signals(id), signalNames: names.signalNames(id) },
    args: { epoch, awaited: signals.join("\n") },
    each: children.map((child) => ({ run: runs.namesOf(child.workflow).run(child.id) })),
  });
  if (answer.kind === "fenced") throw fenced(held);
  const { kind: _kind, cancel, signals: texts, ended, ...counts } = answer;
  return {
    ...counts,
    ...(cancel === "" ? {} : { cancel: JSON.parse(cancel) as CancelRequest }),
    signals: parseSignals(texts),
    ended: ended.flatMap((place) => children[place - 1] ?? []),
  };
};

const refuseUpdate: Call<"refuseUpdate"> = async (
  runs,
  held,
  { id: signalId, name, seq },
  refusal,
) => {
  const { workflow, id, epoch } = held;
  const names = runs.namesOf(workflow);
  const kind = await runs.evaluate(refuseUpdateScript, {
    keys: {
      run: names.run(id),
      signals: names.signals(id),
      signalNames: names.signalNames(id),
      answers: names.answers(id),
      answeredIds: names.answeredIds(id),
    },
    args: { epoch, name, seq, id: updateIdOf(signalId), refusal: JSON.stringify({ refusal }) },
  });
  if (kind === "fenced") throw fenced(held);
};

const appendLog: Call<"appendLog"> = async (runs, held, lines, logged) => {
  const { workflow, id, epoch } = held;
  const names = runs.namesOf(workflow);
  const kind = await runs.evaluate(appendLogScript, {
    keys: { run: names.run(id), logs: names.logs(id) },
    args: { epoch, createdAt: "", logged },
    each: lines.map((line) => ({ text: JSON.stringify(line) })),
  });
  if (kind === "fenced") throw fenced(held);
};

/** Lines of a step whose run no longer waits for it are dropped. */
const appendSpreadLog: Call<"appendSpreadLog"> = async (runs, spread, lines) => {
  const { workflow, id, createdAtMs } = spread;
  const names = runs.namesOf(workflow);
  await runs.evaluate(appendLogScript, {
    keys: { run: names.run(id), logs: names.logs(id) },
    args: { epoch: "", createdAt: createdAtMs, logged: 0 },
    each: lines.map((line) => ({ text: JSON.stringify(line) })),
  });
};

const admitSpread: Call<"admitSpread"> = async (runs, spread, hold) => {
  const { workflow, id, step, createdAtMs, round, reopened } = spread;
  const { wakes, ...names } = runs.namesOf(workflow);
  return await runs.evaluate(admitSpreadScript, {
    keys: { run: names.run(id), steps: names.steps(id), wakes },
    args: { id, step, createdAt: createdAtMs, round, reopened, always: hold === "always" },
  });
};

async function isSpreadAwaited(
  runs: RedisRuns,
  { workflow, id, createdAtMs, round, reopened }: AwaitedSpread,
): Promise<boolean> {
  const [status, createdAt, ...of] = await runs.call((redis) =>
    redis.hmget(runs.namesOf(workflow).run(id), "status", "createdAt", "round", "reopened"),
  );
  const [inRound, times] = [Number(of[0] ?? 1), Number(of[1] ?? 0)];
  const isSame = Number(createdAt) === createdAtMs && inRound === round && times === reopened;
  return isSame && !hasEnded(status);
}

const refuse: Call<"refuse"> = async (runs, held, name, refused) => {
  const { workflow, id, epoch } = held;
  const names = runs.namesOf(workflow);
  const kind = await runs.evaluate(refuseSignalsScript, {
    keys: {
      run: names.run(id),
      signals: names.signals(id),
      signalNames: names.signalNames(id),
      refusals: names.refusals(id),
    },
    args: { epoch, name },
    each: refused.map(({ signal, message }) => ({
      seq: signal.seq,
      text: JSON.stringify({ ...withoutPayload(signal), message }),
    })),
  });
  if (kind === "fenced") throw fenced(held);
};

const watch: Call<"watch"> = async (runs, held, objects) => {
  const { workflow, id, epoch } = held;
  const { waitKinds, rechecks, waitRoot, ...names } = runs.namesOf(workflow);
  const kind = await runs.evaluate(watchScript, {
    keys: { run: names.run(id), waitKinds, rechecks },
    args: { epoch, member: memberOf(held), id, waitRoot, objects: objects.join(" ") },
  });
  if (kind === "fenced") throw fenced(held);
};

async function continueRun(
  runs: RedisRuns,
  held: Held,
  input: unknown,
  output: RunOutputText | undefined,
): Promise<Followers> {
  const { workflow, id, epoch, run } = held;
  const { wakes, codes, statuses, waitKinds, rechecks, waitRoot, ...names } =
    runs.namesOf(workflow);
  const kind = await runs.evaluate(continueScript, {
    keys: {
      run: names.run(id),
      steps: names.steps(id),
      answers: names.answers(id),
      answeredIds: names.answeredIds(id),
      wakes,
      codes,
      waitKinds,
      rechecks,
    },
    args: {
      epoch,
      id,
      version: held.code ?? run.version,
      input: textOf(input),
      statuses,
      member: memberOf(held),
      waitRoot,
      published: output?.published ?? "",
    },
  });
  if (kind === "fenced") throw fenced(held);
  return {};
}

interface LeaveCall {
  readonly how: Leave;
  readonly output: RunOutputText | undefined;
  readonly shared: SharedCalls;
}

async function leave(
  runs: RedisRuns,
  held: Held,
  { how, output, shared }: LeaveCall,
): Promise<Followers> {
  if (how.kind === "continued") return await continueRun(runs, held, how.input, output);
  const { workflow, id, epoch, wakeSeq, run: view } = held;
  const names = runs.namesOf(workflow);
  const text = detailOf(how);
  const call = {
    ...endingKeys(names, id, view.key),
    epoch,
    kind: how.kind,
    untilMs: untilOf(how),
    text,
    blockedError: how.kind === "blocked" ? textOf(how.error) : "",
    id,
    wakeSeq,
    retentionMs: runs.retentionMs,
    statuses: names.statuses,
    objects: how.kind === "waiting" ? (how.objects ?? []).join(" ") : "",
    awaited: how.kind === "waiting" ? awaitedSignals(how.waits).join("\n") : "",
    member: memberOf(held),
    waitRoot: names.waitRoot,
    published: output?.published ?? "",
  };
  const [answer = await shared.leave(call)] =
    text.length > MAX_SHARED ? await runs.evaluate(leaveScript, { each: [call] }) : [];
  if (answer.kind === "fenced") throw fenced(held);
  return followersOf(workflow, answer);
}

async function releaseEnd(runs: RedisRuns, workflow: string, key: string): Promise<void> {
  const { last, lastChecks } = runs.namesOf(workflow);
  await runs.call((redis) =>
    redis.multi().zrem(lastChecks, key).pexpire(last(key), runs.retentionMs).exec(),
  );
}

function hasEnded(status: string | null | undefined): boolean {
  return status === undefined || status === null || isEndStatus(status);
}

function fenced({ workflow, id }: RunRef): FencedError {
  return new FencedError(`another execution holds the run ${workflow}/${id}`);
}

type Left = Exclude<Leave, { readonly kind: "continued" }>;

function untilOf(how: Left): number | "" {
  const untilMs = "untilMs" in how ? how.untilMs : undefined;
  return untilMs === undefined ? "" : Math.ceil(untilMs);
}

function detailOf(how: Left): string {
  switch (how.kind) {
    case "waiting":
      return textOf(how.waits);
    case "blocked":
      return how.reason;
    case "compensating":
      return JSON.stringify(how.failing);
    case "done":
      return textOf(how.result);
    case "failed":
    case "cancelled":
      return JSON.stringify(how.error);
  }
}
