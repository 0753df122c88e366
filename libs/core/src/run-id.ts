/** The form of a run's ID: workflow, percent-encoded cluster, and the ID in both. The ID may have slashes. */
export const RUN_ID_FORM: RegExp = /^([^/]+)\/([^/]+)\/([^]+)$/;
