import type { Explanation } from "@konverge/contracts";
import type { ComponentChildren } from "preact";
import { Status, type Tone } from "../../parts/status.tsx";
import { Time } from "../../parts/time.tsx";
import { viewHref } from "../../state/cluster.ts";
import { objectHref, runHref } from "../../state/router.ts";

type Cause = Explanation["causes"][number];
type Evidence = Cause["evidence"][number];

const TONES: Readonly<Record<Cause["level"], Tone>> = {
  error: "bad",
  warning: "warn",
  info: "wait",
};

/** The causes of the object's state as a chain of sentences, the root cause first. */
export function ExplanationPanel({
  explanation: { causes, verdict, unread },
  controller,
}: {
  readonly explanation: Explanation;
  readonly controller: string;
}) {
  if (verdict === "ok" && causes.length === 0) return null;
  return (
    <section aria-labelledby="explanation">
      <h2 id="explanation">Explanation</h2>
      <ol class="panel chain">
        {causes.map((cause, at) => (
          <li key={`${cause.code}${at}`}>
            <CauseItem cause={cause} controller={controller} />
          </li>
        ))}
      </ol>
      {unread === undefined ? null : (
        <p class="dim small">Conditions and children are unknown: {unread}</p>
      )}
    </section>
  );
}

function CauseItem({ cause, controller }: { readonly cause: Cause; readonly controller: string }) {
  const { level, message, since, action, page, docs, evidence } = cause;
  return (
    <>
      <p>
        <Status tone={TONES[level]} label={level}>
          {message}
        </Status>
        {since === undefined ? null : (
          <span class="dim small">
            {" "}
            since <Time at={since} />
          </span>
        )}
      </p>
      {action === undefined ? null : <p class="small">{withCode(action)}</p>}
      {evidence.length === 0 ? null : (
        <ul class="small dim">
          {evidence.map((fact) => (
            <li key={`${fact.kind}${fact.name}`}>
              <Fact fact={fact} controller={controller} />
            </li>
          ))}
        </ul>
      )}
      {page === undefined && docs === undefined ? null : (
        <p class="small links">
          {page === undefined ? null : <a href={pageHref(page)}>Details</a>}
          {docs === undefined ? null : <a href={docsHref(docs)}>Documentation</a>}
        </p>
      )}
    </>
  );
}

function Fact({ fact, controller }: { readonly fact: Evidence; readonly controller: string }) {
  const { kind, name, at, detail } = fact;
  const to = evidenceHref(fact, controller);
  return (
    <>
      {kind} {to === undefined ? name : <a href={to}>{name}</a>}
      {at === undefined ? null : (
        <>
          , <Time at={at} />
        </>
      )}
      {detail === undefined || detail === "" ? null : `: ${detail}`}
    </>
  );
}

/** The page of a fact; undefined for facts without a page. */
function evidenceHref({ kind, name }: Evidence, controller: string): string | undefined {
  switch (kind) {
    case "run":
      return runHref(name);
    case "hint":
      return viewHref(`/hints/${name}`);
    case "manager":
      return viewHref("/attempts", { controller, manager: name });
    case "worker":
      return viewHref("/workers");
    case "child":
      // A child of another controller has its key as name.
      return name.split("/").length === KEY_PARTS ? objectHref(name) : undefined;
    default:
      return undefined;
  }
}

const KEY_PARTS = 5;

/** Paths of the API have the parameters of the page, but not its cluster. */
function pageHref(page: string): string {
  const [path = "", search = ""] = page.split("?");
  return viewHref(path, Object.fromEntries(new URLSearchParams(search)));
}

function docsHref(docs: string): string {
  const [, name = "README", at] = /^docs\/([\w-]+)\.md(?:#([\w-]+))?$/.exec(docs) ?? [];
  return viewHref(`/docs/${name}`, { at });
}

/** Shows commands, which are between backticks, as code. */
function withCode(text: string): ComponentChildren {
  return text.split("`").map((part, at) => (at % 2 === 0 ? part : <code key={at}>{part}</code>));
}
