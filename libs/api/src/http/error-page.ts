import { ERRORS } from "@konverge/core";

/** Where the `type` of every problem leads, relative to the API: a heading per code. */
export const ERROR_PAGE = "/docs/errors.md";

/** Every code with its title, as Markdown; docs/errors.md of the sources says what to do about each. */
export function errorPage(): string {
  const sections = Object.entries(ERRORS).map(
    ([code, { title, httpStatus }]) => `## ${code}\n\n${title} (HTTP ${httpStatus}).\n`,
  );
  return `# Errors\n\n${sections.join("\n")}`;
}
