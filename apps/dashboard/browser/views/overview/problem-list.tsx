import type { OverviewProblem } from "@konverge/contracts";
import { useState } from "preact/hooks";
import { viewHref } from "../../state/cluster.ts";
import { formatCount, plural } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { Status, type Tone } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { problemHref, problemPlace } from "./problem-href.ts";

const TONES: Readonly<Record<OverviewProblem["level"], Tone>> = {
  error: "bad",
  warning: "warn",
  info: "idle",
};

/** Problems of the whole cluster, which explain others. */
const ROOTS: readonly OverviewProblem["code"][] = [
  "no_workers",
  "api_server_outage",
  "api_server_isolated",
];
/** More errors than this are shown without details. */
const MOST_OPEN = 3;

/** The cause of most other problems: its start, effect and next step. */
export function RootProblems({ problems }: { readonly problems: readonly OverviewProblem[] }) {
  const roots = problems.filter(isRoot);
  if (roots.length === 0) return null;
  return (
    <ul class="problems roots" aria-label="Problems">
      {roots.map((problem) => (
        <Problem key={idOf(problem)} problem={problem} isOpenFirst />
      ))}
    </ul>
  );
}

/** The other problems, and the pauses apart. */
export function ProblemList({ problems }: { readonly problems: readonly OverviewProblem[] }) {
  const listed = problems.filter((problem) => !isRoot(problem));
  const urgent = listed.filter(({ level }) => level !== "info");
  const pauses = listed.filter(({ level }) => level === "info");
  const errors = urgent.filter(({ level }) => level === "error").length;
  const hasRoots = listed.length < problems.length;
  return (
    <div>
      {urgent.length === 0 ? null : (
        <section>
          <h2>
            Needs attention <span class="count">{formatCount(urgent.length)}</span>
          </h2>
          <ul class="problems" aria-label={hasRoots ? "Other problems" : "Problems"}>
            {urgent.map((problem) => (
              <Problem
                key={idOf(problem)}
                problem={problem}
                isOpenFirst={!hasRoots && problem.level === "error" && errors <= MOST_OPEN}
              />
            ))}
          </ul>
        </section>
      )}
      {pauses.length === 0 ? null : (
        <details class="pauses">
          <summary>
            {plural(pauses.length, "pause")}{" "}
            <span class="dim">
              {[...new Set(pauses.map(({ controller }) => controller))].join(", ")}
            </span>
          </summary>
          <ul class="problems" aria-label="Pauses">
            {pauses.map((problem) => (
              <Problem key={idOf(problem)} problem={problem} />
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

const isRoot = ({ code }: OverviewProblem) => ROOTS.includes(code);

/** Stays the same while counts in the message change. */
function idOf({ code, subject, controller, key, run, message }: OverviewProblem): string {
  return JSON.stringify([code, controller, key, run, subject ?? message]);
}

function Problem({
  problem,
  isOpenFirst = false,
}: {
  readonly problem: OverviewProblem;
  readonly isOpenFirst?: boolean;
}) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  const { level, message, subject, cause, since, trend } = problem;
  return (
    <li>
      <div class="problem">
        <a class="problem-what" href={problemHref(problem)} data-row>
          <Status tone={TONES[level]} label={level}>
            <Marked text={message} subject={subject} />
          </Status>
        </a>
        {isOpen || cause === undefined ? null : <span class="problem-cause dim">{cause}</span>}
        <span class="problem-side">
          {trend === undefined || trend === "steady" ? null : <Trend of={trend} />}
          {since === undefined ? null : (
            <span class="dim nowrap">
              began <Time at={since} />
            </span>
          )}
          <a class="chip" href={problemHref(problem)} aria-hidden="true" tabIndex={-1}>
            {problemPlace(problem)}
          </a>
          <button
            type="button"
            class="quiet"
            aria-expanded={isOpen}
            aria-label={`Details: ${message}`}
            onClick={() => setOpen(!isOpen)}
          >
            <Icon name="right" />
          </button>
        </span>
      </div>
      {isOpen ? <Details problem={problem} /> : null}
    </li>
  );
}

/** Emphasizes the subject of a text. */
function Marked({
  text,
  subject,
}: {
  readonly text: string;
  readonly subject?: string | undefined;
}) {
  const at = subject === undefined ? -1 : text.indexOf(subject);
  if (subject === undefined || at === -1) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <strong>{subject}</strong>
      {text.slice(at + subject.length)}
    </>
  );
}

function Trend({ of }: { readonly of: "rising" | "falling" }) {
  return (
    <span class={of === "rising" ? "bad nowrap" : "good nowrap"}>
      <span aria-hidden="true">{of === "rising" ? "↗" : "↘"}</span> {of}
    </span>
  );
}

function Details({ problem }: { readonly problem: OverviewProblem }) {
  const { cause, consequence, action, symptoms = [] } = problem;
  const facts = [
    ["Cause", cause],
    ["Effect", consequence],
    ["Next step", action],
  ] as const;
  return (
    <dl class="problem-facts">
      {facts.map(([title, text]) =>
        text === undefined ? null : (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{withCommands(text)}</dd>
          </div>
        ),
      )}
      {symptoms.length === 0 ? null : (
        <div>
          <dt>{plural(symptoms.length, "symptom")}</dt>
          <dd>
            <ul>
              {symptoms.map((symptom) => (
                <li key={symptom.message}>
                  <a href={problemHref(symptom)}>{symptom.message}</a>
                </li>
              ))}
            </ul>
          </dd>
        </div>
      )}
      {problem.controller === undefined ? null : (
        <div>
          <dt>Controller</dt>
          <dd>
            <a href={viewHref(`/controllers/${encodeURIComponent(problem.controller)}`)}>
              Activity of {problem.controller}
            </a>
          </dd>
        </div>
      )}
    </dl>
  );
}

/** Shows the parts between backticks as code. */
function withCommands(text: string) {
  return text
    .split("`")
    .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
