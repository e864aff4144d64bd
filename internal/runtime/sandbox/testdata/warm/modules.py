import second, pack
print(second.value, second.__file__, pack.x, second.__cached__)
import missing
