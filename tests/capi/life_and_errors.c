/* The C interface from C: life of a cache and every kind of bad input. Each refusal must have a status, a
 * message with what is wrong, and leave everything as it was. */
#include <kvoffload/kvoffload.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256, BLOCKS = 16 };
static unsigned char device[BLOCKS][BLOCK];
static int failures;

/* The text of a known failure lies there first, so that a refusal without a text of its own is noticed. */
static void leave_old_text(void) {
    (void)kvo_cache_start((kvo_cache_t*)(uintptr_t)0xABCDE);
}
#define EXPECT(call, status) (leave_old_text(), expect((call), (status), #call, __LINE__))
static void expect(kvo_status_t got, kvo_status_t wanted, const char* what, int line) {
    const int silent = wanted != KVO_OK && wanted != KVO_E_NOT_READY && strstr(kvo_last_error(), "0xabcde") != NULL;
    if (got == wanted && !silent) return;
    printf("line %d: %s: got %s, wanted %s, text '%s'\n", line, what, kvo_status_name(got),
           kvo_status_name(wanted), kvo_last_error());
    ++failures;
}
#define CHECK(condition) \
    do { if (!(condition)) { printf("line %d: %s\n", __LINE__, #condition); ++failures; } } while (0)

static kvo_config_t good_config(void) {
    kvo_config_t c = KVO_CONFIG_INIT;
    c.budget_bytes = 32u << 20;
    c.block_tokens = 16;
    c.setup = KVO_SETUP_EAGER;
    c.max_ops = 64;
    c.max_inflight_blocks = 256;
    return c;
}
static kvo_part_t good_part(void) {
    kvo_part_t p = {device, BLOCK, BLOCK, BLOCK, 1, 0};
    return p;
}
static kvo_group_config_t good_group(const kvo_part_t* part) {
    kvo_group_config_t g = KVO_GROUP_CONFIG_INIT;
    g.n_device_blocks = BLOCKS;
    g.n_parts = 1;
    g.parts = part;
    return g;
}

static void bad_configs(void) {
    kvo_cache_t* c = NULL;
    kvo_config_t k = good_config(), init;
    kvo_config_init(&init);
    const kvo_config_t macro = KVO_CONFIG_INIT;
    CHECK(memcmp(&init, &macro, sizeof init) == 0);
    EXPECT(kvo_cache_create(NULL, &c), KVO_E_ARGUMENT);
    EXPECT(kvo_cache_create(&k, NULL), KVO_E_ARGUMENT);
    k.struct_size = 0;
    EXPECT(kvo_cache_create(&k, &c), KVO_E_STRUCT);
    k = good_config(), k.api_version = 0;
    EXPECT(kvo_cache_create(&k, &c), KVO_E_STRUCT);
    k = good_config(), k.budget_bytes = 0;
    CHECK(kvo_cache_create(&k, &c) != KVO_OK && kvo_last_error()[0] != '\0' && c == NULL);
    k = good_config(), k.block_tokens = 0;
    CHECK(kvo_cache_create(&k, &c) != KVO_OK && c == NULL);
    k = good_config(), k.policy = 77;
    CHECK(kvo_cache_create(&k, &c) != KVO_OK && c == NULL);
    k = good_config(), k.device = 9;
    CHECK(kvo_cache_create(&k, &c) != KVO_OK && c == NULL);
    k = good_config(), k.budget_bytes = (uint64_t)1 << 50;
    EXPECT(kvo_cache_create(&k, &c), KVO_E_BUDGET);
    CHECK(strstr(kvo_last_error(), "1125899906842624") != NULL);
    /* A newer caller's longer struct: fine while the unknown rest is zero. */
    struct { kvo_config_t known; uint64_t more; } newer = {good_config(), 0};
    newer.known.struct_size = sizeof newer;
    EXPECT(kvo_cache_create(&newer.known, &c), KVO_OK);
    EXPECT(kvo_cache_destroy(c, 0), KVO_OK);
    newer.more = 1;
    EXPECT(kvo_cache_create(&newer.known, &c), KVO_E_STRUCT);
    /* An older caller's shorter struct: fields it does not have get their defaults. */
    k = good_config(), k.struct_size = offsetof(kvo_config_t, log);
    EXPECT(kvo_cache_create(&k, &c), KVO_OK);
    EXPECT(kvo_cache_destroy(c, 0), KVO_OK);
}

static void bad_groups(void) {
    kvo_cache_t* c;
    kvo_config_t k = good_config();
    kvo_part_t p = good_part();
    kvo_group_config_t g = good_group(&p);
    uint32_t n;
    EXPECT(kvo_cache_create(&k, &c), KVO_OK);
    EXPECT(kvo_cache_start(c), KVO_E_STATE); /* no group yet */
    EXPECT(kvo_register_group(c, NULL, &n), KVO_E_ARGUMENT);
    g.parts = NULL;
    EXPECT(kvo_register_group(c, &g, &n), KVO_E_ARGUMENT);
    g = good_group(&p), p.block_stride = BLOCK - 1;
    CHECK(kvo_register_group(c, &g, &n) != KVO_OK);
    p = good_part(), p.row_bytes = 0;
    CHECK(kvo_register_group(c, &g, &n) != KVO_OK);
    p = good_part(), p.rows = 2, p.row_pitch = 16;
    CHECK(kvo_register_group(c, &g, &n) != KVO_OK);
    p = good_part(), p.base = NULL;
    CHECK(kvo_register_group(c, &g, &n) != KVO_OK);
    kvo_part_t twice[2] = {good_part(), good_part()};
    g = good_group(twice), g.n_parts = 2;
    EXPECT(kvo_register_group(c, &g, &n), KVO_E_LAYOUT); /* overlap */
    p = good_part(), g = good_group(&p), g.device_block_tokens = 7;
    CHECK(kvo_register_group(c, &g, &n) != KVO_OK);
    g = good_group(&p), g.kind = 99;
    CHECK(kvo_register_group(c, &g, &n) != KVO_OK);
    g = good_group(&p);
    EXPECT(kvo_register_group(c, &g, &n), KVO_OK);
    EXPECT(kvo_register_group(c, &g, &n), KVO_E_LAYOUT); /* the same memory again */
    kvo_match_t m;
    kvo_ns_t ns = {0};
    EXPECT(kvo_probe(c, ns, NULL, 0, 0, &m), KVO_E_STATE); /* before start */
    kvo_seq_t s;
    EXPECT(kvo_seq_begin(c, ns, NULL, &s), KVO_E_STATE);
    EXPECT(kvo_cache_start(c), KVO_OK);
    EXPECT(kvo_cache_start(c), KVO_E_STATE);
    EXPECT(kvo_register_group(c, &g, &n), KVO_E_STATE);
    EXPECT(kvo_cache_destroy(c, 0), KVO_OK);
    /* A budget in which not one block fits. */
    k.budget_bytes = 4096;
    if (kvo_cache_create(&k, &c) == KVO_OK) {
        EXPECT(kvo_register_group(c, &g, &n), KVO_OK);
        EXPECT(kvo_cache_start(c), KVO_E_BUDGET);
        EXPECT(kvo_cache_destroy(c, 0), KVO_OK);
    }
}

static void bad_hooks(kvo_cache_t* c, kvo_ns_t ns) {
    kvo_seq_t s, no_seq = {99};
    uint32_t tokens[40] = {0}, n_tokens;
    kvo_lookup_state_t state;
    EXPECT(kvo_seq_end(c, no_seq), KVO_E_HANDLE);
    EXPECT(kvo_seq_begin(c, ns, NULL, &s), KVO_OK);
    EXPECT(kvo_seq_lookup(c, s, NULL, 40, 0, &n_tokens, &state), KVO_E_ARGUMENT);
    EXPECT(kvo_seq_lookup(c, s, tokens, 40, 41, &n_tokens, &state), KVO_E_RANGE);
    EXPECT(kvo_cache_destroy(c, 0), KVO_E_BUSY);

    /* A malformed item of a batch answers for itself, the others are done all the same. */
    uint32_t table[3] = {0, 1, 2}, one = 7;
    kvo_blocks_t list = {0, 3, table}, twice[2] = {{0, 3, table}, {0, 3, table}};
    kvo_seq_info_t info = KVO_SEQ_INFO_INIT;
    EXPECT(kvo_seq_lookup(c, s, tokens, 40, 0, &n_tokens, &state), KVO_OK);
    kvo_decode_item_t items[3] = {{{99}, &one, 1, 41, &list, 1, 55}, {s, &one, 1, 41, &list, 1, 55},
                                  {s, NULL, 1, 42, twice, 2, 55}};
    EXPECT(kvo_seq_decode_batch(c, items, 3, KVO_STREAM_IDLE), KVO_E_HANDLE);
    CHECK(items[0].status == KVO_E_HANDLE && items[1].status == KVO_OK && items[2].status == KVO_E_ARGUMENT);
    EXPECT(kvo_seq_info(c, s, &info), KVO_OK);
    CHECK(info.n_tokens == 41);
    EXPECT(kvo_seq_decode_batch(c, NULL, 3, KVO_STREAM_IDLE), KVO_E_ARGUMENT);
    EXPECT(kvo_quiesce(c, KVO_FOREVER), KVO_OK);
    EXPECT(kvo_seq_end(c, s), KVO_OK);
    EXPECT(kvo_seq_end(c, s), KVO_E_HANDLE);
}

static void texts(kvo_cache_t* c) {
    size_t needed = 0;
    char small[4];
    EXPECT(kvo_metrics_text(c, small, sizeof small, &needed), KVO_E_RANGE);
    char* text = malloc(needed + 64);
    EXPECT(kvo_metrics_text(c, text, needed + 64, &needed), KVO_OK);
    CHECK(strstr(text, "# TYPE kvoffload_stored_blocks counter\nkvoffload_stored_blocks 5\n") != NULL);
    EXPECT(kvo_stats_json(c, text, 0, &needed), KVO_E_RANGE);
    free(text);
}

static void bad_calls(void) {
    kvo_cache_t *c, *old;
    kvo_config_t k = good_config();
    kvo_part_t p = good_part();
    kvo_group_config_t g = good_group(&p);
    kvo_key_t keys[3] = {{"one"}, {"two"}, {"three"}};
    uint32_t n, ids[3] = {0, 1, 2}, far[3] = {0, 1, BLOCKS};
    kvo_blocks_t src = {0, 3, ids}, wrong = {0, 3, far}, few = {0, 2, ids}, other = {5, 3, ids};
    kvo_blocks_t two[2] = {{0, 3, ids}, {0, 3, ids}};
    kvo_store_result_t r;
    kvo_op_t op;
    kvo_ticket_t t, foreign = {12345678901234u};
    kvo_match_t m;
    kvo_completion_t done;
    kvo_ns_t ns = {0}, no_ns = {4711};
    EXPECT(kvo_cache_create(&k, &c), KVO_OK);
    EXPECT(kvo_register_group(c, &g, &n), KVO_OK);
    EXPECT(kvo_cache_start(c), KVO_OK);
    EXPECT(kvo_store(c, ns, NULL, 3, NULL, &src, 1, KVO_STREAM_IDLE, NULL, &r, &op), KVO_E_ARGUMENT);
    EXPECT(kvo_store(c, ns, keys, 3, NULL, &wrong, 1, KVO_STREAM_IDLE, NULL, &r, &op), KVO_E_RANGE);
    CHECK(kvo_store(c, ns, keys, 3, NULL, &few, 1, KVO_STREAM_IDLE, NULL, &r, &op) != KVO_OK);
    CHECK(kvo_store(c, ns, keys, 3, NULL, &other, 1, KVO_STREAM_IDLE, NULL, &r, &op) != KVO_OK);
    EXPECT(kvo_store(c, ns, keys, 3, NULL, two, 2, KVO_STREAM_IDLE, NULL, &r, &op), KVO_E_ARGUMENT);
    EXPECT(kvo_store(c, ns, keys, 3, NULL, &src, 1, KVO_STREAM_IDLE, NULL, &r, NULL), KVO_E_ARGUMENT);
    CHECK(kvo_store(c, no_ns, keys, 3, NULL, &src, 1, KVO_STREAM_IDLE, NULL, &r, &op) != KVO_OK);
    kvo_store_options_t o = KVO_STORE_OPTIONS_INIT;
    o.flags = 1u << 30;
    EXPECT(kvo_store(c, ns, keys, 3, NULL, &src, 1, KVO_STREAM_IDLE, &o, &r, &op), KVO_E_ARGUMENT);
    EXPECT(kvo_store(c, ns, keys, 3, NULL, &src, 1, (void*)(uintptr_t)0x7777, NULL, &r, &op), KVO_E_ARGUMENT);
    kvo_stats_t stats;
    kvo_stats_init(&stats);
    EXPECT(kvo_stats(c, &stats), KVO_OK);
    CHECK(stats.blocks_resident == 0 && stats.blocks_writing == 0 && stats.ops_active == 0);

    memset(device[0], 1, BLOCK), memset(device[1], 2, BLOCK), memset(device[2], 3, BLOCK);
    EXPECT(kvo_store(c, ns, keys, 3, NULL, &src, 1, KVO_STREAM_IDLE, NULL, &r, &op), KVO_OK);
    EXPECT(kvo_op_wait(c, op, KVO_FOREVER, &done), KVO_OK);
    EXPECT(kvo_op_wait(c, op, KVO_FOREVER, &done), KVO_E_HANDLE); /* taken once */
    CHECK(done.n_done == 3);
    EXPECT(kvo_probe(c, ns, keys, 3, 4, &m), KVO_E_RANGE); /* n_local above n */
    EXPECT(kvo_match(c, ns, keys, 3, 0, NULL, &t, &m), KVO_OK);
    CHECK(m.n_ready == 3);
    CHECK(kvo_load(c, t, 2, 2, &src, 1, KVO_STREAM_IDLE, NULL, &op) != KVO_OK);
    EXPECT(kvo_load(c, t, 0, 3, &wrong, 1, KVO_STREAM_IDLE, NULL, &op), KVO_E_RANGE);
    EXPECT(kvo_load(c, foreign, 0, 3, &src, 1, KVO_STREAM_IDLE, NULL, &op), KVO_E_HANDLE);
    EXPECT(kvo_cache_destroy(c, 0), KVO_E_BUSY); /* a ticket is held */
    EXPECT(kvo_ticket_release(c, t), KVO_OK);
    EXPECT(kvo_ticket_release(c, t), KVO_E_HANDLE);
    EXPECT(kvo_op_cancel(c, op), KVO_E_HANDLE);
    EXPECT(kvo_op_wait_stream(c, op, KVO_STREAM_IDLE, 0), KVO_E_ARGUMENT);
    EXPECT(kvo_cache_resize(c, (uint64_t)1 << 50), KVO_E_RANGE);

    bad_hooks(c, ns);
    texts(c);

    EXPECT(kvo_cache_shutdown(c, KVO_FOREVER), KVO_OK);
    CHECK(kvo_match(c, ns, keys, 3, 0, NULL, &t, &m) == KVO_E_STATE);
    old = c;
    EXPECT(kvo_cache_destroy(c, 0), KVO_OK);
    EXPECT(kvo_cache_destroy(old, 0), KVO_E_HANDLE);
    EXPECT(kvo_cache_start(old), KVO_E_HANDLE);
    EXPECT(kvo_cache_start(NULL), KVO_E_HANDLE);
    EXPECT(kvo_cache_start((kvo_cache_t*)(void*)&old), KVO_E_HANDLE);
    EXPECT(kvo_cache_destroy(NULL, 0), KVO_OK);
}

int main(void) {
    bad_configs();
    bad_groups();
    bad_calls();
    printf("%d failures\n", failures);
    return failures != 0;
}
