import type { OverviewProblem } from "@konverge/contracts";
import { plural } from "../../parts/format.ts";
import { Icon } from "../../parts/icon.tsx";
import { Status, type Tone } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { problemHref } from "./problem-href.ts";

const TONES: Readonly<Record<OverviewProblem["level"], Tone>> = {
  error: "bad",
  warning: "warn",
  info: "idle",
};

/** The current problems with start, cause, effect and next step. */
export function ProblemList({ problems }: { readonly problems: readonly OverviewProblem[] }) {
  if (problems.length === 0) return null;
  return (
    <ul class="problems" aria-label="Problems">
      {problems.map((problem) => (
        <Problem key={`${problem.code}${problem.message}`} problem={problem} />
      ))}
    </ul>
  );
}

function Problem({ problem }: { readonly problem: OverviewProblem }) {
  const { level, message, since, symptoms = [] } = problem;
  return (
    <li>
      <a href={problemHref(problem)} data-row>
        <Status tone={TONES[level]}>{message}</Status>
        {since === undefined ? null : (
          <span class="dim since">
            began <Time at={since} />
          </span>
        )}
        <Icon name="right" />
      </a>
      {level === "info" ? null : <ProblemFacts problem={problem} />}
      {symptoms.length === 0 ? null : (
        <details class="symptoms">
          <summary>{plural(symptoms.length, "symptom")}</summary>
          <ul>
            {symptoms.map((symptom) => (
              <li key={symptom.message}>
                <a href={problemHref(symptom)}>{symptom.message}</a>
              </li>
            ))}
          </ul>
        </details>
      )}
    </li>
  );
}

function ProblemFacts({ problem: { cause, consequence, action } }: { problem: OverviewProblem }) {
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
    </dl>
  );
}

/** Shows the parts between backticks as code. */
function withCommands(text: string) {
  return text
    .split("`")
    .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
