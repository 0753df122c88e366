/** The reason why the answer of a recorded call is missing. */
type Omission = "tooLarge" | "notJson" | "aborted";

/** An error without a response of the API server. */
export interface RecordedError {
  readonly code: string;
  readonly message: string;
  readonly retryAfterMs?: number | undefined;
  /** True if the server closed the connection, so that a write may have taken effect. */
  readonly broken?: true | undefined;
}

/** A call of an attempt, with its answer. */
export interface RecordedCall {
  /** When it was sent and answered, as numbers that increase during the attempt. */
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With the query. */
  readonly path: string;
  readonly contentType?: string | undefined;
  readonly accept?: string | undefined;
  readonly body?: string | undefined;
  readonly answer?:
    | {
        readonly status: number;
        readonly headers: Readonly<Record<string, string>>;
        readonly body: string;
      }
    | undefined;
  readonly error?: RecordedError | undefined;
  readonly redacted?: true | undefined;
  readonly omitted?: Omission | undefined;
}

/** A request, recorded or not. */
export type SentRequest = Pick<RecordedCall, "method" | "path" | "contentType" | "body" | "answer">;

/** Returns the numbers that order the reads and writes of an attempt. */
export type Tick = () => number;
