import functools
import gc
import importlib.util
import os
import shutil
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Tests compile many small programs, and XLA's older emitters need a third of the time. Processes that a test starts
# inherit the flag. A version of XLA that no longer knows it stops with an error: remove this line then.
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_use_fusion_emitters=false".strip()
# Small networks and environments take longer to optimise than to run; the exceptions use the `optimised` fixture.
os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"

import hypothesis
import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache

# Broadcasting over a missing axis is nearly always a mistake, so it must be written out.
jax.config.update("jax_numpy_rank_promotion", "raise")

# Tracing creates hundreds of thousands of objects and keeps most of them. Scanning all of them for garbage again and
# again would take a tenth of tracing's time. The source location of each operation is not needed either.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 20)
jax.config.update("jax_traceback_in_locations_limit", 0)

# The first example compiles the environment, which can take longer than any reasonable deadline per example. CI tries
# more examples.
hypothesis.settings.register_profile(
    "consmarl", deadline=None, print_blob=True, max_examples=100 if os.environ.get("CI") else 50
)
hypothesis.settings.load_profile("consmarl")


# Modules and folders with slow tests: at the end, they would leave one core idle. Before them come modules that drop
# all compiled programs, which takes seconds once there are many.
FIRST_MODULES = (
    "training/test_programs.py", "sharing/test_counters.py", "sharing/test_fingerprints.py",
    "parity/test_released_policies.py", "experiments/test_run_directory.py",
    "experiments/sweeps/test_ray.py", "docs/test_tutorials.py", "training/test_every_method.py",
    "experiments/test_train.py", "probes/test_methods.py", "environments/test_packages.py",
    "experiments/sweeps/test_conduct.py", "cli/test_tries.py", "training/test_devices.py", "docs/test_site.py",
    "cli/test_workbench.py", "examples/test_extending.py", "/test_package.py", "/training/", "/viewer/", "/sharing/",
    "/learners/", "/environments/", "/experiments/",
)  # fmt: skip
SLOW = Path(__file__).with_name("slow.txt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the tests listed in slow.txt, and start with the slowest modules (needs `--no-loadscope-reorder`)."""
    mark_slow(items, is_part=any("::" in argument for argument in config.args))

    def place(item):
        name = item.path.as_posix()
        return next((at for at, long in enumerate(FIRST_MODULES) if long in name), len(FIRST_MODULES))

    items.sort(key=place)


def mark_slow(items, is_part):
    """Mark tests `slow` by module, name or case; refuse a line that matches no test of a collected module."""
    named = {line for line in SLOW.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")}
    modules, fitting = set(), set()
    for item in items:
        module = f"tests/{item.path.relative_to(SLOW.parent).as_posix()}"
        case = module + "::" + item.nodeid.partition("::")[2]
        modules.add(module)
        if found := named & {module, case, case.partition("[")[0]}:
            item.add_marker(pytest.mark.slow)
            fitting |= found
    unknown = sorted(line for line in named - fitting if line.partition("::")[0] in modules)
    if unknown and not is_part:
        raise pytest.UsageError(f"tests/slow.txt names what is not there: {', '.join(unknown)}.")


def find_chromium():
    """Return the path of the browser, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def pytest_sessionstart():
    """Stop at once if a dependency named in CONSMARL_REQUIRES is missing: its tests would be skipped silently."""
    there = {"browser": find_chromium} | {
        name: functools.partial(importlib.util.find_spec, name) for name in ("hatchling", "ray", "torch")
    }
    missing = [name for name in os.environ.get("CONSMARL_REQUIRES", "").split() if not there[name]()]
    if missing:
        pytest.exit(f"not there, though CONSMARL_REQUIRES names it: {', '.join(missing)}.", returncode=1)


def pytest_configure(config):
    """Share compiled programs, most of the work, among a session's processes; the next session starts with none.

    Storing and finding a program takes longer than compiling a small one.
    """
    # JAX does not write cache entries atomically: a process that reads half an entry compiles the program itself
    config.addinivalue_line("filterwarnings", "ignore:Error reading persistent compilation cache entry:UserWarning")
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return  # in xdist's workers, which inherit the directory from this process
    directory = tempfile.mkdtemp(prefix="consmarl-compiled-")
    config.add_cleanup(functools.partial(shutil.rmtree, directory, ignore_errors=True))
    settings = {
        "jax_compilation_cache_dir": directory,
        "jax_persistent_cache_min_compile_time_secs": 0.1,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    for name, value in settings.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)


@pytest.fixture(scope="module")
def optimised():
    """Compile with optimisations, as users do: for tests that compute for a long time."""
    jax.config.update("jax_disable_most_optimizations", False)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "false"
    jax.clear_caches()
    yield
    jax.config.update("jax_disable_most_optimizations", True)
    os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"
    jax.clear_caches()


@pytest.fixture(scope="module", autouse=True)
def _few_programs_in_memory():
    """Drop compiled programs before the process reaches Linux's limit of 65,530 memory mappings."""
    yield
    pieces = Path("/proc/self/maps")
    if pieces.exists() and pieces.read_bytes().count(b"\n") > 45_000:
        jax.clear_caches()


@pytest.fixture
def without_jax_cache():
    """Turn JAX's own compilation cache off, as it is for users."""
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    jax.clear_caches()
    yield
    jax.config.update("jax_enable_compilation_cache", True)
    compilation_cache.reset_cache()


@pytest.fixture(scope="module")
def browser():
    """Start a browser that makes no network requests of its own."""
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("there is no Chromium")
    quietly = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
               "--disable-sync", "--no-first-run"]  # fmt: skip
    with playwright.sync_playwright() as starter:
        launched = starter.chromium.launch(executable_path=chromium, args=quietly)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser):
    """Open pages; afterwards, check that no script failed and that nothing but the pages was requested."""
    contexts, complaints, requests, addresses = [], [], set(), set()

    def open_page(address, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        addresses.add(address.partition("#")[0])
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.add(request.url.partition("#")[0]))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    assert {url for url in requests if not url.startswith("data:")} == addresses


@pytest.fixture
def unregistered():
    """Restore all registries after the test."""
    from consmarl import registry

    before = [(each, dict(each._entries), dict(each._homes)) for each in registry._ALL]
    yield
    for each, entries, homes in before:
        each._entries, each._homes = entries, homes
