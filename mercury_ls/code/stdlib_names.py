"""The imports of well-known names of the standard libraries."""

import re
import sys
from functools import cache

__all__ = ["statement"]

PYTHON = """
abc ABC abstractmethod|collections Counter OrderedDict defaultdict deque namedtuple
contextlib contextmanager suppress|dataclasses dataclass|datetime timedelta|decimal Decimal|enum Enum|fractions Fraction
functools cached_property lru_cache partial singledispatch wraps|io BytesIO StringIO|pathlib Path PurePath
tempfile NamedTemporaryFile TemporaryDirectory|types SimpleNamespace
typing Any Callable ClassVar Dict Final Generic Iterable Iterator List Literal Mapping NamedTuple Optional Protocol
typing Sequence Set Tuple Type TypedDict TypeVar TYPE_CHECKING Union overload|unittest.mock MagicMock Mock
"""
RUST = """
borrow Cow|cell Cell RefCell|cmp Ordering Reverse|collections BTreeMap BTreeSet BinaryHeap HashMap HashSet VecDeque
convert Infallible|ffi CStr CString OsStr OsString|fs File|io BufRead BufReader BufWriter|marker PhantomData
net IpAddr Ipv4Addr Ipv6Addr SocketAddr TcpListener TcpStream|num NonZeroUsize|ops Deref DerefMut|path Path PathBuf
pin Pin|process ExitCode|rc Rc|str FromStr|sync Arc Mutex OnceLock RwLock|time Duration Instant SystemTime
"""
GO = """
archive/tar archive/zip bufio bytes compress/gzip context crypto/sha256 crypto/tls database/sql embed encoding/base64
encoding/binary encoding/hex encoding/json encoding/xml errors flag fmt hash/fnv io io/fs io/ioutil log log/slog maps
math math/big net net/http net/http/httptest net/netip net/url os os/exec os/signal path path/filepath reflect regexp
runtime slices sort strconv strings sync sync/atomic syscall testing time unicode unicode/utf8 unsafe
"""
JAVA = """
io BufferedReader File FileInputStream FileNotFoundException FileOutputStream IOException InputStream InputStreamReader
io OutputStream PrintWriter Reader Serializable UncheckedIOException Writer|math BigDecimal BigInteger
nio.charset StandardCharsets|nio.file Files Path Paths|time Duration Instant LocalDate LocalDateTime
util ArrayDeque ArrayList Arrays BitSet Collection Collections Comparator Deque HashMap HashSet Iterator LinkedHashMap
util LinkedHashSet LinkedList List Locale Map NoSuchElementException Objects Optional PriorityQueue Properties Queue
util Random Set TreeMap TreeSet UUID|util.concurrent Callable ConcurrentHashMap CountDownLatch ExecutorService Executors
util.concurrent Future TimeUnit|util.concurrent.atomic AtomicBoolean AtomicInteger AtomicLong AtomicReference
util.function BiFunction Consumer Function Predicate Supplier|util.regex Matcher Pattern
util.stream Collectors IntStream Stream
"""
C = """
assert assert|ctype isalnum isalpha isdigit isspace tolower toupper|errno errno|math ceil fabs floor pow sqrt
stdbool bool|stddef offsetof ptrdiff_t|stdint int16_t int32_t int64_t int8_t
stdint uint16_t uint32_t uint64_t uint8_t uintptr_t
stdio fclose fgets fopen fprintf fputs fread fwrite perror printf snprintf sscanf
stdlib abort atoi calloc exit free getenv malloc qsort realloc strtol strtoul
string memcmp memcpy memmove memset strchr strcmp strcpy strdup strerror strlen strncmp strncpy strrchr strstr
time clock_gettime strftime time_t
"""
CPP = """
algorithm sort find_if transform|array array|atomic atomic|chrono chrono|functional function|iostream cerr cin cout
map map multimap|memory make_shared make_unique shared_ptr unique_ptr weak_ptr|mutex lock_guard mutex unique_lock
optional nullopt optional|set set|sstream istringstream ostringstream stringstream|stdexcept invalid_argument
stdexcept logic_error out_of_range runtime_error|string string to_string|string_view string_view|thread thread
tuple make_tuple tuple|unordered_map unordered_map|unordered_set unordered_set|utility move pair|variant variant
vector vector
"""


def statement(name: str, suffix: str, text: str) -> str:
    """The import statement for an unknown name of a text; empty if the standard library has no such name."""
    match suffix:
        case ".py":
            return of_python(name, text)
        case ".go":
            path = packages().get(name)
            return f'import "{path}"' if path and re.search(rf"(?<![\w.]){name}\.[A-Z]", text) else ""
        case ".rs":
            return f"use std::{module}::{name};" if (module := table(RUST).get(name)) else ""
        case ".java":
            return f"import java.{module}.{name};" if (module := table(JAVA).get(name)) else ""
        case ".c" | ".h":
            return f"#include <{module}.h>" if (module := table(C).get(name)) else ""
        case ".cc" | ".cpp" | ".cxx" | ".hpp":
            module = table(CPP).get(name)
            return f"#include <{module}>" if module and re.search(rf"\bstd::{name}\b", text) else ""
        case _:
            return ""


def of_python(name: str, text: str) -> str:
    if module := table(PYTHON).get(name):
        return f"from {module} import {name}"
    is_module = name in sys.stdlib_module_names and re.search(rf"(?<![\w.]){name}\.\w", text)
    return f"import {name}" if is_module else ""


@cache
def table(text: str) -> dict[str, str]:
    rows = [row.split() for row in re.split(r"[|\n]", text) if row.strip()]
    return {name: row[0] for row in rows for name in row[1:]}


@cache
def packages() -> dict[str, str]:
    return {path.rpartition("/")[2]: path for path in GO.split()}
