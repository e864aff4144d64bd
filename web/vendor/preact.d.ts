// What the page uses of preact.js. Templates are not typed: components are called as functions with typed props, or through h.
export type Node = any;
export function h<P>(type: (props: P) => Node, props: P & { key?: string | number }): Node;
export function render(node: Node, into: Element): void;
export function html(strings: TemplateStringsArray, ...values: unknown[]): Node;
export interface Signal<T> { value: T }
export function signal<T>(value: T): Signal<T>;
export function computed<T>(f: () => T): { readonly value: T };
export function effect(f: () => void): () => void;
export function untracked<T>(f: () => T): T;
export function batch<T>(f: () => T): T;
export function useState<T>(first: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export function useRef<T>(first: T): { current: T };
export function useMemo<T>(f: () => T, when: unknown[]): T;
export function useEffect(f: () => void | (() => void), when?: unknown[]): void;
export function useLayoutEffect(f: () => void | (() => void), when?: unknown[]): void;
export function useErrorBoundary(): [unknown, () => void];
