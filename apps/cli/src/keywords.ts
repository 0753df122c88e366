import { findValueIssues, type Schema } from "@konverge/apiserver/schema";
import { checkKeywords, type SchemaKeywords } from "@konverge/engine";
import type { z } from "zod";

/**
 * Attaches keywords of a CRD's schema for which zod has no method:
 * `z.record(z.string(), z.string()).check(keywords({ maxProperties: 8 }))`. The CRD contains them, and `parse` checks them
 * as the API server does. `konverge types --zod` writes them.
 */
export function keywords<T>(added: SchemaKeywords): z.core.$ZodCheck<T> {
  const schema = added as Schema;
  return checkKeywords(added, (value) => findValueIssues(schema, value));
}
