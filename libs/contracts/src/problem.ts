import { z } from "zod";

/** An error by RFC 9457, with a stable `code` and a JSON pointer for each invalid field. */
export const problemSchema = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number(),
  detail: z.string(),
  instance: z.string(),
  code: z.string(),
  retryAfterMs: z.number().optional(),
  errors: z.array(z.object({ pointer: z.string(), detail: z.string() })).optional(),
});

export type Problem = z.infer<typeof problemSchema>;

/** A rejected item of a batch, beside the results of the others. */
export const rejectedItemSchema = z.object({
  error: problemSchema.pick({
    code: true,
    title: true,
    status: true,
    detail: true,
    retryAfterMs: true,
    errors: true,
  }),
});
