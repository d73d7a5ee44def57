// Sizes of the public structs, frozen per ABI level: a change of layout does not compile. Structs have no
// tail padding, so that struct_size tells every version apart.
#include "kvoffload/kvoffload.h"

#define KVO_FROZEN(type, size) static_assert(sizeof(type) == (size), #type)

KVO_FROZEN(kvo_config_t, 168);
KVO_FROZEN(kvo_group_config_t, 56);
KVO_FROZEN(kvo_part_t, 40);
KVO_FROZEN(kvo_blocks_t, 16);
KVO_FROZEN(kvo_key_t, 32);
KVO_FROZEN(kvo_op_t, 8);
KVO_FROZEN(kvo_ticket_t, 8);
KVO_FROZEN(kvo_reservation_t, 8);
KVO_FROZEN(kvo_seq_t, 8);
KVO_FROZEN(kvo_ns_t, 8);
KVO_FROZEN(kvo_capacity_t, 48);
KVO_FROZEN(kvo_ns_options_t, 16);
KVO_FROZEN(kvo_match_t, 8);
KVO_FROZEN(kvo_match_options_t, 16);
KVO_FROZEN(kvo_load_options_t, 32);
KVO_FROZEN(kvo_store_options_t, 56);
KVO_FROZEN(kvo_store_result_t, 16);
KVO_FROZEN(kvo_completion_t, 56);
KVO_FROZEN(kvo_seq_options_t, 40);
KVO_FROZEN(kvo_decode_item_t, 40);
KVO_FROZEN(kvo_seq_info_t, 24);
KVO_FROZEN(kvo_stats_t, 472);
KVO_FROZEN(kvo_event_t, 48);
