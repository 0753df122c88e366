/** The arguments of a call of a logger. */
export interface LogCall {
  readonly fields: object;
  readonly message: string;
}

/** Returns the fields and the message of a call. JavaScript may pass the message alone, as pino allows. */
export function readLogCall(fields: unknown, message: unknown): LogCall {
  if (typeof fields === "object" && fields !== null) return { fields, message: String(message) };
  return { fields: {}, message: String(message ?? fields) };
}
