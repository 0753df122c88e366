/** The acts in the order in which they play. */
export const ACTS = ["naive", "lazy", "konverge"] as const;
export type ActName = (typeof ACTS)[number];
