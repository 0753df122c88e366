import type { JsonValue } from "@konverge/core";

/** A received response. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** A received response of a call that succeeded. */
export interface ApiAnswer {
  readonly status: number;
  readonly headers: HttpAnswer["headers"];
  readonly text: string;
  /** The parsed body; undefined unless its content type is JSON. */
  readonly value: JsonValue | undefined;
}
