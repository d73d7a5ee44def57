/* Stores two blocks of a CPU "device" in host memory, finds them by key, and copies them back. */
#include <kvoffload/kvoffload.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, BLOCKS = 8 };
static unsigned char device[BLOCKS][BLOCK];

static void check(kvo_status_t s) {
    if (s != KVO_OK) fprintf(stderr, "%s: %s\n", kvo_status_name(s), kvo_last_error()), exit(1);
}

int main(void) {
    kvo_cache_t* cache;
    kvo_config_t config = KVO_CONFIG_INIT;
    config.budget_bytes = 64u << 20, config.block_tokens = 16, config.setup = KVO_SETUP_EAGER;
    check(kvo_cache_create(&config, &cache));
    kvo_part_t part = {device, BLOCK, BLOCK, BLOCK, 1, 0};
    kvo_group_config_t group = KVO_GROUP_CONFIG_INIT;
    group.n_device_blocks = BLOCKS, group.n_parts = 1, group.parts = &part;
    uint32_t g, ids[2] = {0, 1}, back[2] = {6, 7};
    check(kvo_register_group(cache, &group, &g));
    check(kvo_cache_start(cache));

    memset(device[0], 'a', BLOCK), memset(device[1], 'b', BLOCK);
    kvo_key_t keys[2] = {{"first block"}, {"second block"}};
    kvo_blocks_t src = {g, 2, ids}, dst = {g, 2, back};
    kvo_ns_t ns = {0};
    kvo_store_result_t stored; kvo_completion_t done; kvo_op_t op; kvo_ticket_t ticket; kvo_match_t found;
    check(kvo_store(cache, ns, keys, 2, NULL, &src, 1, KVO_STREAM_IDLE, NULL, &stored, &op));
    check(kvo_op_wait(cache, op, KVO_FOREVER, &done));
    check(kvo_match(cache, ns, keys, 2, 0, NULL, &ticket, &found));
    check(kvo_load(cache, ticket, 0, found.n_ready, &dst, 1, KVO_STREAM_IDLE, NULL, &op));
    check(kvo_op_wait(cache, op, KVO_FOREVER, &done));
    check(kvo_ticket_release(cache, ticket));
    printf("%u blocks came back: %c %c\n", done.n_done, device[6][0], device[7][BLOCK - 1]);
    check(kvo_cache_shutdown(cache, KVO_FOREVER)), check(kvo_cache_destroy(cache, 0));
    return done.n_done == 2 && device[6][0] == 'a' && device[7][BLOCK - 1] == 'b' ? 0 : 1;
}
