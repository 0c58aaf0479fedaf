/* Plans: nodes are laid into lanes, so that few of them have to wait for other lanes, and neighbours in a lane become
 * one operation. Of each item it is known how far into each lane the items reach that come before it: what that says
 * already has not to be waited for once more, and a lane all of which comes before an item can go on with it. */
#include "graph_plan.h"

#include <stdlib.h>
#include <string.h>

#include "driver.h"
#include "graph_items.h"

enum {
  ENOUGH_LANES = 16, /* further ones only for contexts that have none */
  MOST_LANES = 80,   /* more than there are devices */
};

struct laid {
  size_t lane, position; /* where in it */
  size_t first_wait, waits;
  bool awaited;
  uint32_t reach[MOST_LANES]; /* of each lane, how many items come before this one */
};

struct laying {
  const struct items *items;
  struct laid *laid; /* one for each item */
  CUcontext contexts[MOST_LANES];
  unsigned long long context_ids[MOST_LANES];
  uint32_t lengths[MOST_LANES];
  size_t last[MOST_LANES]; /* the last item */
  size_t lanes;
  size_t *waits, wait_count; /* items; room for all edges */
};

static CUcontext context_of(const struct item *item) {
  return item->node && item->node->command ? item->node->command->context : NULL;
}

static bool suits(const struct laying *laying, size_t lane, CUcontext context) {
  return !context || !laying->contexts[lane] || laying->contexts[lane] == context;
}

static void reach_over(struct laid *laid, const struct laid *other, size_t lanes) {
  for (size_t lane = 0; lane < lanes; lane++)
    if (laid->reach[lane] < other->reach[lane]) laid->reach[lane] = other->reach[lane];
  if (laid->reach[other->lane] <= other->position) laid->reach[other->lane] = (uint32_t)other->position + 1;
}

/* A lane that goes on with one of the items before it, or all of which comes before it; or a new one; or a short
 * one. */
static size_t choose(struct laying *laying, const struct item *item, const struct laid *laid) {
  CUcontext context = context_of(item);
  size_t shortest = MOST_LANES;
  for (size_t n = 0; n < item->count; n++) {
    size_t before = laying->items->before[item->before + n], lane = laying->laid[before].lane;
    if (laying->last[lane] == before && suits(laying, lane, context)) return lane;
  }
  for (size_t lane = 0; lane < laying->lanes; lane++) {
    if (!suits(laying, lane, context)) continue;
    if (laid->reach[lane] == laying->lengths[lane]) return lane;
    if (shortest == MOST_LANES || laying->lengths[lane] < laying->lengths[shortest]) shortest = lane;
  }
  if (shortest != MOST_LANES && laying->lanes >= ENOUGH_LANES) return shortest;
  return laying->lanes < MOST_LANES ? laying->lanes++ : shortest;
}

/* Which items of other lanes it has to wait for: the later ones first, because they come after most of the others. */
static void find_waits(struct laying *laying, const struct item *item, struct laid *laid) {
  size_t *list = laying->waits + laying->wait_count;
  struct laid known = {.lane = laid->lane};
  if (laid->position) reach_over(&known, &laying->laid[laying->last[laid->lane]], laying->lanes);
  for (size_t done = 0; done < item->count; done++) {
    const struct laid *latest = NULL;
    for (size_t n = 0; n < item->count; n++) {
      const struct laid *before = &laying->laid[laying->items->before[item->before + n]];
      if (known.reach[before->lane] <= before->position && (!latest || before > latest)) latest = before;
    }
    if (!latest) break;
    reach_over(&known, latest, laying->lanes);
    list[laid->waits++] = (size_t)(latest - laying->laid);
    laying->laid[latest - laying->laid].awaited = true;
  }
  laying->wait_count += laid->waits;
}

static CUresult lay(struct laying *laying, size_t number) {
  const struct item *item = &laying->items->at[number];
  struct laid *laid = &laying->laid[number];
  for (size_t n = 0; n < item->count; n++)
    reach_over(laid, &laying->laid[laying->items->before[item->before + n]], laying->lanes);
  laid->lane = choose(laying, item, laid);
  if (laid->lane == MOST_LANES) return CUDA_ERROR_NOT_SUPPORTED;
  laid->position = laying->lengths[laid->lane]++;
  laid->first_wait = laying->wait_count;
  find_waits(laying, item, laid);
  if (laid->position) reach_over(laid, &laying->laid[laying->last[laid->lane]], laying->lanes);
  if (context_of(item)) {
    laying->contexts[laid->lane] = context_of(item);
    laying->context_ids[laid->lane] = item->node->command->context_id;
  }
  laying->last[laid->lane] = number;
  return CUDA_SUCCESS;
}

static bool is_alone(const struct item *item) {
  const struct command *command = item->node ? item->node->command : NULL;
  return command && (command->kind->foreign || command->kind->defers || command->kind->queue);
}

/* Whether an item goes into the same segment as the one before it in its lane. */
static bool joins(const struct laying *laying, size_t number, size_t previous) {
  return laying->laid[number].position && !laying->laid[number].waits && !laying->laid[previous].awaited &&
         !is_alone(&laying->items->at[number]) && !is_alone(&laying->items->at[previous]);
}

/* The segment of each item, into `segment_of`, and how many items each segment has. */
static void cut(const struct laying *laying, struct plan *plan, size_t *segment_of, size_t *sizes) {
  size_t last[MOST_LANES] = {0};
  for (size_t n = 0; n < laying->items->count; n++) {
    const struct laid *laid = &laying->laid[n];
    if (joins(laying, n, last[laid->lane])) {
      segment_of[n] = segment_of[last[laid->lane]];
    } else {
      segment_of[n] = plan->segment_count++;
      plan->segments[segment_of[n]] = (struct segment){
          .lane = laid->lane, .waits = laid->waits, .first_wait = laid->first_wait,
          .alone = is_alone(&laying->items->at[n])};
    }
    struct segment *segment = &plan->segments[segment_of[n]];
    sizes[segment_of[n]]++;
    segment->awaited |= laid->awaited || n == laying->last[laid->lane];
    plan->lanes[laid->lane].last = segment_of[n];
    last[laid->lane] = n;
  }
}

static CUresult fill(const struct laying *laying, struct plan *plan, const size_t *segment_of, const size_t *sizes) {
  for (size_t n = 0; n < plan->segment_count; n++) {
    plan->segments[n].chain = calloc(1, sizeof(struct chain) + sizes[n] * sizeof(struct command *));
    if (!plan->segments[n].chain) return CUDA_ERROR_OUT_OF_MEMORY;
    plan->segments[n].chain->references = 1;
  }
  for (size_t n = 0; n < laying->items->count; n++) {
    struct node *node = laying->items->at[n].node;
    struct chain *chain = plan->segments[segment_of[n]].chain;
    if (!node) continue;
    struct command *command = node->command && !node->disabled ? command_hold(node->command) : NULL;
    plan->slots[plan->slot_count++] = (struct slot){node->origin, node, segment_of[n], chain->count};
    chain->commands[chain->count++] = command;
  }
  return CUDA_SUCCESS;
}

static int compare(const void *left, const void *right) {
  const struct slot *a = left, *b = right;
  return (a->origin > b->origin) - (a->origin < b->origin);
}

/* Nodes with graphs in them have slots too, which lead nowhere. */
static void add_graphs(const struct graph *graph, struct plan *plan) {
  for (size_t n = 0; n < graph->nodes.count; n++) {
    struct node *node = graph->nodes.at[n];
    if (!node->child) continue;
    plan->slots[plan->slot_count++] = (struct slot){.origin = node->origin, .node = node};
    add_graphs(node->child, plan);
  }
}

static size_t count_nodes(const struct graph *graph) {
  size_t count = graph->nodes.count;
  for (size_t n = 0; n < graph->nodes.count; n++)
    if (graph->nodes.at[n]->child) count += count_nodes(graph->nodes.at[n]->child);
  return count;
}

static CUresult build(const struct graph *graph, struct laying *laying, struct plan *plan) {
  size_t count = laying->items->count;
  for (size_t n = 0; n < count; n++) CHECK(lay(laying, n));
  plan->lane_count = laying->lanes;
  for (size_t n = 0; n < laying->lanes; n++)
    plan->lanes[n] = (struct lane){.context = laying->contexts[n], .context_id = laying->context_ids[n]};
  size_t *segment_of = calloc(2 * count + 1, sizeof *segment_of);
  if (!segment_of) return CUDA_ERROR_OUT_OF_MEMORY;
  cut(laying, plan, segment_of, segment_of + count);
  CUresult result = fill(laying, plan, segment_of, segment_of + count);
  for (size_t n = 0; n < laying->wait_count; n++) plan->waits[n] = segment_of[laying->waits[n]];
  free(segment_of);
  add_graphs(graph, plan);
  qsort(plan->slots, plan->slot_count, sizeof *plan->slots, compare);
  return result;
}

CUresult plan_make(struct graph *graph, struct plan *plan, struct node **bad) {
  struct items items;
  *plan = (struct plan){0};
  CHECK(items_make(graph, &items, bad));
  struct laying *laying = calloc(1, sizeof *laying);
  plan->segments = calloc(items.count + 1, sizeof *plan->segments);
  plan->waits = calloc(items.before_count + 1, sizeof *plan->waits);
  plan->lanes = calloc(MOST_LANES, sizeof *plan->lanes);
  plan->slots = calloc(count_nodes(graph) + 1, sizeof *plan->slots);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (laying && plan->segments && plan->waits && plan->lanes && plan->slots) {
    laying->items = &items;
    laying->laid = calloc(items.count + 1, sizeof *laying->laid);
    laying->waits = calloc(items.before_count + 1, sizeof *laying->waits);
    if (laying->laid && laying->waits) result = build(graph, laying, plan);
    free(laying->laid);
    free(laying->waits);
  }
  free(laying);
  items_end(&items);
  if (result != CUDA_SUCCESS) plan_end(plan);
  return result;
}

void plan_end(struct plan *plan) {
  for (size_t n = 0; n < plan->segment_count; n++)
    if (plan->segments[n].chain) chain_release(plan->segments[n].chain);
  free(plan->segments);
  free(plan->waits);
  free(plan->lanes);
  free(plan->slots);
  *plan = (struct plan){0};
}

struct slot *plan_slot(const struct plan *plan, unsigned long long origin) {
  struct slot wanted = {.origin = origin};
  return bsearch(&wanted, plan->slots, plan->slot_count, sizeof wanted, compare);
}

struct chain *chain_hold(struct chain *chain) {
  chain->references++;
  return chain;
}

void chain_release(struct chain *chain) {
  if (--chain->references) return;
  for (size_t n = 0; n < chain->count; n++)
    if (chain->commands[n]) command_release(chain->commands[n]);
  free(chain);
}

/* One that nobody else has. */
static struct chain *chain_own(struct chain *chain) {
  if (chain->references == 1) return chain;
  struct chain *own = malloc(sizeof *own + chain->count * sizeof *own->commands);
  if (!own) return NULL;
  own->references = 1;
  own->count = chain->count;
  for (size_t n = 0; n < chain->count; n++)
    own->commands[n] = chain->commands[n] ? command_hold(chain->commands[n]) : NULL;
  chain_release(chain);
  return own;
}

bool chain_set(struct chain **chain, size_t index, struct command *command) {
  struct chain *own = chain_own(*chain);
  if (!own) return false;
  *chain = own;
  struct command *before = own->commands[index];
  own->commands[index] = command ? command_hold(command) : NULL;
  if (before) command_release(before);
  return true;
}
