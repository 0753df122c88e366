import { Time } from "./time.tsx";

interface Line {
  readonly at: string;
  readonly level: string;
  readonly step?: string | undefined;
  readonly message: string;
  readonly fields?: Readonly<Record<string, unknown>> | undefined;
}

/** Log lines of an attempt or run. */
export function LogLines({ lines }: { readonly lines: readonly Line[] }) {
  return (
    <pre class="json" tabIndex={0}>
      {lines.map(({ at, level, step, message, fields }, index) => (
        <div key={`${at}/${index}`}>
          <Time at={at} /> {level} {step === undefined ? "" : `[${step}] `}
          {message} {fields === undefined ? "" : JSON.stringify(fields)}
        </div>
      ))}
    </pre>
  );
}
