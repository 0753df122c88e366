/** The object of the operator in this folder. */
export interface Site {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly resourceVersion?: string;
  };
  readonly spec: { readonly text: string; readonly replicas: number };
}
