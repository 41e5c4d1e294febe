LOADS = {}
def load_table(found): return ""
