import { fenced, type JournalCall } from "./journal-call.ts";
import { parseSignals } from "./run-fields.ts";
import { withoutPayload, type CancelRequest } from "./run-record.ts";
import { updateIdOf } from "./run-updates.ts";
import { newsScript } from "./scripts/news.ts";
import { readSignalsScript } from "./scripts/read-signals.ts";
import { refuseSignalsScript } from "./scripts/refuse-signals.ts";
import { refuseUpdateScript } from "./scripts/refuse-update.ts";
import { READ_AT_ONCE } from "./signal-limits.ts";

export const readSignals: JournalCall<"readSignals"> = async (runs, { workflow, id }, name) => {
  const { signals, signalNames } = runs.namesOf(workflow);
  const texts = await runs.evaluate(readSignalsScript, {
    keys: { signals: signals(id), signalNames: signalNames(id) },
    args: { name, most: READ_AT_ONCE },
  });
  return parseSignals(texts);
};

export const news: JournalCall<"news"> = async (runs, held, { signals, children }) => {
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

export const refuseUpdate: JournalCall<"refuseUpdate"> = async (
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

export const refuse: JournalCall<"refuse"> = async (runs, held, name, refused) => {
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
