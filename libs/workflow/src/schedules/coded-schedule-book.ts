import { defined, type PayloadCodec } from "@konverge/core";
import { createValueCodec, lenient } from "../codec/value-codec.ts";
import type { Schedule } from "./define-schedule.ts";
import type { ScheduleBook } from "./schedule-book.ts";

/** Returns a book that stores the inputs of schedules encoded. An input that cannot be decoded stays encoded. */
export function codedScheduleBook(
  book: ScheduleBook,
  codec: PayloadCodec | undefined,
): ScheduleBook {
  if (codec === undefined) return book;
  const values = lenient(createValueCodec(codec));
  // Each round stores a schedule again.
  const encoded = new WeakMap<Schedule, Schedule>();
  const encode = async (schedule: Schedule): Promise<Schedule> => {
    const context = { workflow: schedule.workflow.name, kind: "input" } as const;
    const known = encoded.get(schedule) ?? {
      ...schedule,
      input: await values.encode(schedule.input, context),
    };
    encoded.set(schedule, known);
    return known;
  };
  return {
    ...book,
    look: async (schedule, nowMs) => await book.look(await encode(schedule), nowMs),
    async list() {
      const known = (await book.list()).map(async (each) => {
        const context = { workflow: each.workflow, kind: "input" } as const;
        return { ...each, ...defined({ input: await values.decode(each.input, context) }) };
      });
      return await Promise.all(known);
    },
  };
}
