"""The common names that every file of a language can use without declaring or importing them."""

import builtins
from functools import cache

from mercury_engine.api import NameKind

JAVASCRIPT = """
Array ArrayBuffer BigInt Blob Boolean Buffer Date Error Event EventTarget FormData Function Headers Infinity Intl JSON
Map Math NaN Number Object Promise Proxy RangeError ReadableStream Reflect RegExp Request Response Set String Symbol
SyntaxError TextDecoder TextEncoder TypeError URL URLSearchParams Uint8Array WeakMap WeakSet WebSocket AbortController
AbortSignal clearInterval clearTimeout console crypto decodeURIComponent document encodeURIComponent exports fetch
globalThis isNaN module parseFloat parseInt performance process queueMicrotask require setImmediate setInterval
setTimeout structuredClone undefined window global __dirname __filename afterAll afterEach beforeAll beforeEach describe
expect expectTypeOf it jest test vi
"""
TYPES = """
Awaited Exclude Extract InstanceType NonNullable Omit Parameters Partial Pick Readonly Record Required ReturnType any
bigint boolean never number object string symbol unknown void
"""
RUST = """
Box Clone Copy Debug Default Drop Eq Err Fn FnMut FnOnce From Hash Into IntoIterator Iterator None Ok Option Ord
PartialEq PartialOrd Result Self Send Sized Some String Sync ToOwned ToString Vec assert assert_eq assert_ne bool char
crate dbg debug_assert eprintln f32 f64 format i16 i32 i64 i8 isize matches panic print println self std str super todo
u16 u32 u64 u8 unimplemented unreachable usize vec write writeln
"""
GO = """
any append bool byte cap clear close comparable complex128 copy delete error false float32 float64 int int16 int32
int64 int8 iota len make max min new nil panic print println real recover rune string true uint uint16 uint32 uint64
uint8 uintptr
"""
JAVA = """
Boolean Character Class Double Enum Exception Float IllegalArgumentException IllegalStateException Integer Iterable Long
Math Number Object Override Runnable RuntimeException String StringBuilder System Thread Throwable Void
"""
KOTLIN = """
Any Array Boolean Byte Char CharSequence Collection Comparable Deprecated Double Exception Float Int Iterable
IllegalArgumentException IllegalStateException JvmField JvmStatic Lazy List Long Map MutableList MutableMap MutableSet
Nothing Number Pair Result Sequence Set Short String StringBuilder Suppress Throwable Triple Unit arrayOf buildList
buildMap buildString check checkNotNull emptyList emptyMap error generateSequence lazy listOf mapOf maxOf minOf
mutableListOf mutableMapOf mutableSetOf print println repeat require requireNotNull run runCatching sequence setOf with
"""
LISTS = {"go": GO, "java": JAVA, "javascript": JAVASCRIPT, "kotlin": KOTLIN, "rust": RUST}
LISTS |= {"typescript": JAVASCRIPT + TYPES, "tsx": JAVASCRIPT + TYPES}
MODULE_NAMES = ("__file__", "__name__", "__doc__", "__path__", "__package__", "__spec__", "__builtins__")


@cache
def builtin_names(language: str) -> dict[str, NameKind]:
    """The names with their kinds."""
    if language == "python":
        names: dict[str, NameKind] = dict.fromkeys(MODULE_NAMES, "variable")
        names["__import__"] = "function"
        names |= {name: _kind_of(getattr(builtins, name)) for name in dir(builtins) if not name.startswith("__")}
        return names
    return {name: "class" if name[0].isupper() else "function" for name in LISTS.get(language, "").split()}


def _kind_of(value: object) -> NameKind:
    if isinstance(value, type):
        return "class"
    return "function" if callable(value) else "constant"
