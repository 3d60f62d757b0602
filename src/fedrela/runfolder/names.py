"""The names of the files in a run folder."""

MANIFEST, CONFIG, MACHINE, LOCK = "manifest.json", "config.toml", "machine.json", "lock"
ROUNDS, TIMING, EXCLUSIONS = "rounds.jsonl", "timing.jsonl", "exclusions.jsonl"
RELABELLING, GALLERY, RESULT, REPORT = "relabelling.json", "gallery.npz", "result.json", "report.html"
CHECKPOINT, LEDGERS = "checkpoint", "ledgers"

LOGS = (ROUNDS, TIMING, EXCLUSIONS)
COMPARED = (MANIFEST, CONFIG, ROUNDS, RELABELLING, GALLERY)  # and every ledger
WRITABLE = (MACHINE, RELABELLING, GALLERY, REPORT)
READABLE = (*WRITABLE, MANIFEST, CONFIG, *LOGS, RESULT)

LIMIT = 1 << 30  # bytes of any of these; checkpoint arrays may be larger
