/*
 * A stand-in for libnvidia-ml.so.1: the C functions that the agent's readings rest on, each answered
 * from a table of "key=value" lines, so that the real nvidia-ml-py runs above it on a machine
 * without a GPU.
 *
 * The file is named by GPU_ADMIT_FAKE_NVML and read anew when it changes: a test breaks a link by
 * writing the file again. Without the file every call answers DRIVER_NOT_LOADED. A key that is not
 * there answers NOT_SUPPORTED, as NVML does for what a board has not got.
 *
 * Layouts and numbers follow nvml.h (NVIDIA/go-nvml, gen/nvml/nvml.h). Only what is declared here is
 * known: a function that is missing makes pynvml raise FUNCTION_NOT_FOUND, as an old driver does.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, GPU_IS_LOST = 15
};
enum { MAX_GPUS = 16, MAX_MIGS = 8, MAX_LINKS = 36, MAX_LINES = 20000 };

typedef int Return;
typedef struct { int gpu, mig; } Device; /* mig -1: the whole GPU */

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} PciInfo;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } Process;
typedef struct {
    unsigned sms, copy, dec, enc, jpeg, ofa, giSlices, ciSlices;
    unsigned long long memoryMiB;
} Attributes;
typedef struct {
    unsigned version;
    unsigned char cluster[16];
    Return status;
    unsigned clique;
    unsigned char state;
    unsigned healthMask;
    unsigned char healthSummary;
} Fabric;
typedef struct { Device *device; unsigned id, profile, start, size; } Instance;
typedef struct { Device *device; unsigned long long type, data; unsigned gi, ci; } Event;

/* -- the table -------------------------------------------------------------------------------- */

static char *text;
static const char *keys[MAX_LINES], *values[MAX_LINES];
static int lines, initialised;
static unsigned long long xids_given;
static struct timespec read_at;
static off_t read_size = -1;
static Device devices[MAX_GPUS][MAX_MIGS + 1];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int refresh_locked(void) {
    const char *path = getenv("GPU_ADMIT_FAKE_NVML");
    struct stat now;
    if (!path || stat(path, &now)) { read_size = -1; return 0; }
    if (read_size == now.st_size && read_at.tv_sec == now.st_mtim.tv_sec &&
        read_at.tv_nsec == now.st_mtim.tv_nsec)
        return 1;
    FILE *file = fopen(path, "r");
    if (!file) return 0;
    free(text);
    text = calloc(1, (size_t)now.st_size + 1);
    size_t got = fread(text, 1, (size_t)now.st_size, file);
    fclose(file);
    text[got] = 0;
    lines = 0;
    for (char *line = strtok(text, "\n"); line && lines < MAX_LINES; line = strtok(NULL, "\n")) {
        char *mark = strchr(line, '=');
        if (!mark) continue;
        *mark = 0;
        keys[lines] = line;
        values[lines++] = mark + 1;
    }
    read_at = now.st_mtim;
    read_size = now.st_size;
    return 1;
}

static const char *find(const char *key) {
    int low = 0, high = lines - 1; /* the writer sorts the lines */
    while (low <= high) {
        int middle = (low + high) / 2, order = strcmp(key, keys[middle]);
        if (!order) return values[middle];
        if (order < 0) high = middle - 1; else low = middle + 1;
    }
    return NULL;
}

/* The value of a key of one device into buffer; 0 where there is none. */
static int copy(const Device *d, const char *what, char *buffer, size_t size) {
    char key[128];
    if (d && d->mig >= 0) snprintf(key, sizeof key, "gpu/%d/mig/%d/%s", d->gpu, d->mig, what);
    else if (d) snprintf(key, sizeof key, "gpu/%d/%s", d->gpu, what);
    else snprintf(key, sizeof key, "%s", what);
    pthread_mutex_lock(&lock);
    const char *found = refresh_locked() ? find(key) : NULL;
    if (found) snprintf(buffer, size, "%s", found);
    pthread_mutex_unlock(&lock);
    return found != NULL;
}

static int number(const Device *d, const char *what, unsigned long long *into) {
    char buffer[64];
    if (!copy(d, what, buffer, sizeof buffer)) return 0;
    *into = strtoull(buffer, NULL, 0);
    return 1;
}

/* What stands between a call and its answer; an error number from the table, or OK. */
static Return gate(const Device *d) {
    unsigned long long code = 0;
    char buffer[8];
    if (!copy(NULL, "gpus", buffer, sizeof buffer)) return DRIVER_NOT_LOADED;
    if (number(NULL, "error", &code) && code) return (Return)code;
    if (!initialised) return UNINITIALIZED;
    if (d) {
        Device whole = {d->gpu, -1};
        if (number(&whole, "lost", &code) && code) return GPU_IS_LOST;
    }
    return OK;
}

#define GATE(d) do { Return r_ = gate(d); if (r_ != OK) return r_; } while (0)

static Return one(Device *d, const char *what, unsigned *into) {
    unsigned long long found;
    GATE(d);
    if (!number(d, what, &found)) return NOT_SUPPORTED;
    *into = (unsigned)found;
    return OK;
}

static Return words(Device *d, const char *what, char *into, unsigned size) {
    GATE(d);
    return copy(d, what, into, size) ? OK : NOT_SUPPORTED;
}

static void bus_id(const char *address, PciInfo *pci) {
    unsigned function = 0;
    memset(pci, 0, sizeof *pci);
    sscanf(address, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.%X", pci->domain, pci->bus,
             pci->device, function);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.%X",
             pci->domain & 0xffff, pci->bus, pci->device, function);
}

/* -- the library ------------------------------------------------------------------------------ */

Return nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    char buffer[8];
    unsigned long long code = 0;
    if (!copy(NULL, "gpus", buffer, sizeof buffer)) return DRIVER_NOT_LOADED;
    if (number(NULL, "error", &code) && code) return (Return)code;
    initialised++;
    for (int g = 0; g < MAX_GPUS; g++)
        for (int m = 0; m <= MAX_MIGS; m++) devices[g][m] = (Device){g, m - 1};
    return OK;
}
Return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
Return nvmlShutdown(void) {
    if (!initialised) return UNINITIALIZED;
    initialised--;
    return OK;
}
const char *nvmlErrorString(Return code) { (void)code; return "an error of the stand-in"; }
Return nvmlSystemGetDriverVersion(char *into, unsigned size) { return words(NULL, "driver", into, size); }
Return nvmlSystemGetCudaDriverVersion_v2(int *into) { return one(NULL, "cuda", (unsigned *)into); }
Return nvmlSystemGetCudaDriverVersion(int *into) { return nvmlSystemGetCudaDriverVersion_v2(into); }

Return nvmlDeviceGetCount_v2(unsigned *count) { return one(NULL, "gpus", count); }
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    unsigned long long count = 0, code = 0;
    GATE(NULL);
    number(NULL, "gpus", &count);
    if (index >= count) return INVALID_ARGUMENT;
    Device whole = {(int)index, -1};
    if (number(&whole, "handle", &code) && code) return (Return)code;
    *device = &devices[index][0];
    return OK;
}

Return nvmlDeviceGetUUID(Device *d, char *into, unsigned size) { return words(d, "uuid", into, size); }
Return nvmlDeviceGetName(Device *d, char *into, unsigned size) { return words(d, "name", into, size); }
Return nvmlDeviceGetSerial(Device *d, char *into, unsigned size) { return words(d, "serial", into, size); }
Return nvmlDeviceGetMinorNumber(Device *d, unsigned *into) { return one(d, "minor", into); }
Return nvmlDeviceGetCudaComputeCapability(Device *d, int *major, int *minor) {
    Return first = one(d, "compute/major", (unsigned *)major);
    return first != OK ? first : one(d, "compute/minor", (unsigned *)minor);
}
Return nvmlDeviceGetPciInfo_v3(Device *d, PciInfo *pci) {
    char address[32];
    GATE(d);
    if (!copy(d, "pci", address, sizeof address)) return NOT_SUPPORTED;
    bus_id(address, pci);
    return OK;
}
Return nvmlDeviceGetMemoryInfo_v2(Device *d, Memory2 *memory) {
    GATE(d);
    if (memory->version != (sizeof(Memory2) | 2u << 24)) return 25; /* ARGUMENT_VERSION_MISMATCH */
    if (!number(d, "memory/total", &memory->total)) return NOT_SUPPORTED;
    memory->reserved = memory->used = 0;
    number(d, "memory/reserved", &memory->reserved);
    number(d, "memory/used", &memory->used);
    memory->free = memory->total - memory->reserved - memory->used;
    return OK;
}
Return nvmlDeviceGetMemoryInfo(Device *d, Memory *memory) { /* counts the reserve as used */
    Memory2 whole = {.version = sizeof(Memory2) | 2u << 24};
    Return got = nvmlDeviceGetMemoryInfo_v2(d, &whole);
    if (got == OK) *memory = (Memory){whole.total, whole.free, whole.used + whole.reserved};
    return got;
}
Return nvmlDeviceGetMemoryAffinity(Device *d, unsigned size, unsigned long *set, unsigned scope) {
    unsigned node;
    (void)scope;
    Return got = one(d, "numa", &node);
    if (got != OK) return got;
    memset(set, 0, size * sizeof *set);
    if (node / 64 < size) set[node / 64] |= 1ul << (node % 64);
    return OK;
}
Return nvmlDeviceGetTopologyCommonAncestor(Device *a, Device *b, unsigned *level) {
    char what[32];
    GATE(b);
    snprintf(what, sizeof what, "level/%d", b->gpu);
    return one(a, what, level);
}

/* -- links ------------------------------------------------------------------------------------ */

static Return link_value(Device *d, unsigned link, const char *what, unsigned *into) {
    char key[48];
    if (link >= MAX_LINKS) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "link/%u/%s", link, what);
    return one(d, key, into);
}
Return nvmlDeviceGetNvLinkState(Device *d, unsigned link, unsigned *up) { return link_value(d, link, "up", up); }
Return nvmlDeviceGetNvLinkVersion(Device *d, unsigned link, unsigned *version) { return link_value(d, link, "version", version); }
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device *d, unsigned link, unsigned *type) { return link_value(d, link, "type", type); }
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *d, unsigned link, PciInfo *pci) {
    char key[48], address[32];
    GATE(d);
    if (link >= MAX_LINKS) return INVALID_ARGUMENT;
    snprintf(key, sizeof key, "link/%u/pci", link);
    if (!copy(d, key, address, sizeof address)) return NOT_SUPPORTED;
    bus_id(address, pci);
    return OK;
}
Return nvmlDeviceGetGpuFabricInfoV(Device *d, Fabric *fabric) {
    char cluster[64];
    unsigned long long clique = 0, state = 0, status = 0, mask = 0, summary = 0;
    unsigned version = fabric->version >> 24;
    GATE(d);
    if (version != 2 && version != 3) return 25;
    if (!number(d, "fabric/state", &state)) return NOT_SUPPORTED;
    number(d, "fabric/clique", &clique);
    number(d, "fabric/status", &status);
    number(d, "fabric/health", &mask);
    number(d, "fabric/summary", &summary);
    memset(fabric->cluster, 0, 16);
    if (copy(d, "fabric/cluster", cluster, sizeof cluster))
        for (int i = 0; i < 16; i++) sscanf(cluster + 2 * i, "%2hhx", &fabric->cluster[i]);
    fabric->status = (Return)status;
    fabric->clique = (unsigned)clique;
    fabric->state = (unsigned char)state;
    fabric->healthMask = (unsigned)mask;
    if (version == 3) fabric->healthSummary = (unsigned char)summary;
    return OK;
}

/* -- MIG -------------------------------------------------------------------------------------- */

Return nvmlDeviceGetMigMode(Device *d, unsigned *current, unsigned *pending) {
    Return got = one(d, "migmode", current);
    if (got == OK && one(d, "migpending", pending) != OK) *pending = *current;
    return got;
}
Return nvmlDeviceGetMaxMigDeviceCount(Device *d, unsigned *count) {
    GATE(d);
    *count = MAX_MIGS - 1;
    return OK;
}
Return nvmlDeviceGetMigDeviceHandleByIndex(Device *d, unsigned index, Device **mig) {
    char buffer[96];
    GATE(d);
    if (index >= MAX_MIGS) return INVALID_ARGUMENT;
    if (!copy(&devices[d->gpu][index + 1], "uuid", buffer, sizeof buffer)) return NOT_FOUND;
    *mig = &devices[d->gpu][index + 1];
    return OK;
}
Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device *mig, Device **d) {
    GATE(mig);
    *d = &devices[mig->gpu][0];
    return OK;
}
Return nvmlDeviceGetGpuInstanceId(Device *d, unsigned *into) { return one(d, "gi", into); }
Return nvmlDeviceGetComputeInstanceId(Device *d, unsigned *into) { return one(d, "ci", into); }
Return nvmlDeviceGetGpuInstanceById(Device *d, unsigned id, Device **instance) {
    unsigned long long found;
    GATE(d);
    for (int m = 1; m <= MAX_MIGS; m++)
        if (number(&devices[d->gpu][m], "gi", &found) && found == id) {
            *instance = &devices[d->gpu][m];
            return OK;
        }
    return NOT_FOUND;
}
Return nvmlGpuInstanceGetInfo(Device *instance, Instance *into) {
    *into = (Instance){.device = &devices[instance->gpu][0]};
    Return got = one(instance, "gi", &into->id);
    if (got == OK) got = one(instance, "start", &into->start);
    return got == OK ? one(instance, "size", &into->size) : got;
}
Return nvmlDeviceGetAttributes_v2(Device *d, Attributes *into) {
    unsigned long long found;
    GATE(d);
    memset(into, 0, sizeof *into);
    if (!number(d, "memory/mib", &into->memoryMiB)) return NOT_SUPPORTED;
    if (number(d, "slices/gi", &found)) into->giSlices = (unsigned)found;
    if (number(d, "slices/ci", &found)) into->ciSlices = (unsigned)found;
    if (number(d, "sms", &found)) into->sms = (unsigned)found;
    return OK;
}

/* -- processes, memory errors, events ---------------------------------------------------------- */

/* The table has "pid:bytes:gi,pid:bytes:gi"; gi 4294967295 where there is no MIG. */
static Return processes(Device *d, const char *what, unsigned *count, Process *into) {
    char listed[1024], *rest = listed;
    unsigned found = 0, room = *count;
    GATE(d);
    if (!copy(d, what, listed, sizeof listed)) { *count = 0; return OK; }
    for (char *item; (item = strsep(&rest, ",")) && *item; found++)
        if (into && found < room) {
            into[found] = (Process){.gi = ~0u, .ci = ~0u};
            sscanf(item, "%u:%llu:%u", &into[found].pid, &into[found].used, &into[found].gi);
        }
    *count = found;
    return found > (into ? room : 0) ? INSUFFICIENT_SIZE : OK;
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device *d, unsigned *n, Process *into) { return processes(d, "processes/compute", n, into); }
Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device *d, unsigned *n, Process *into) { return processes(d, "processes/graphics", n, into); }
Return nvmlDeviceGetMPSComputeRunningProcesses_v3(Device *d, unsigned *n, Process *into) { return processes(d, "processes/mps", n, into); }

Return nvmlDeviceGetTotalEccErrors(Device *d, unsigned type, unsigned counter, unsigned long long *into) {
    char key[48];
    GATE(d);
    snprintf(key, sizeof key, "ecc/%s/%s", counter ? "aggregate" : "volatile",
             type ? "uncorrected" : "corrected");
    return number(d, key, into) ? OK : NOT_SUPPORTED;
}
Return nvmlDeviceGetRetiredPages(Device *d, unsigned cause, unsigned *count, unsigned long long *pages) {
    unsigned long long there = 0;
    GATE(d);
    if (!number(d, cause ? "retired/double" : "retired/single", &there)) return NOT_SUPPORTED;
    unsigned room = *count;
    *count = (unsigned)there;
    if (!pages || room < there) return there ? INSUFFICIENT_SIZE : OK;
    for (unsigned i = 0; i < there; i++) pages[i] = 0x1000ull * (i + 1);
    return OK;
}
Return nvmlDeviceGetRetiredPagesPendingStatus(Device *d, unsigned *pending) { return one(d, "retired/pending", pending); }
Return nvmlDeviceGetRemappedRows(Device *d, unsigned *corrected, unsigned *uncorrected, unsigned *pending, unsigned *failed) {
    Return got = one(d, "rows/corrected", corrected);
    if (got == OK) got = one(d, "rows/uncorrected", uncorrected);
    if (got == OK) got = one(d, "rows/pending", pending);
    return got == OK ? one(d, "rows/failed", failed) : got;
}

Return nvmlEventSetCreate(void **set) {
    static int only;
    GATE(NULL);
    *set = &only;
    return OK;
}
Return nvmlEventSetFree(void *set) { (void)set; return initialised ? OK : UNINITIALIZED; }
Return nvmlDeviceRegisterEvents(Device *d, unsigned long long types, void *set) {
    unsigned long long refused = 0;
    (void)types; (void)set;
    GATE(d);
    return number(d, "noevents", &refused) && refused ? NOT_SUPPORTED : OK;
}
/* "xids" has "gpu:code,gpu:code"; each is given once in the order listed, a longer list later. */
Return nvmlEventSetWait_v2(void *set, Event *event, unsigned milliseconds) {
    char listed[1024], *rest = listed, *item;
    unsigned long long position = 0;
    int gpu;
    (void)set; (void)milliseconds;
    GATE(NULL);
    if (!copy(NULL, "xids", listed, sizeof listed)) { xids_given = 0; return TIMEOUT; }
    while ((item = strsep(&rest, ",")) && *item)
        if (position++ == xids_given) {
            xids_given++;
            *event = (Event){.type = 8, .gi = ~0u, .ci = ~0u};
            sscanf(item, "%d:%llu", &gpu, &event->data);
            event->device = &devices[gpu][0];
            return OK;
        }
    return TIMEOUT;
}
